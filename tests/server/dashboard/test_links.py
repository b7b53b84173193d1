import re
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from penstock import Penstock
from penstock.server.access.identity import Scope
from penstock.server.dashboard.links import Links
from tests.server.dashboard.conftest import Browser

PAGES = ("", "jobs", "jobs/new", "jobs/new?type=mail.send")


async def test_all_addresses_stay_below_the_mount(server: FastAPI, app: Penstock) -> None:
    whole = Starlette(routes=[Mount("/tools/penstock", app=server)])
    transport = httpx.ASGITransport(whole)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        browser = Browser(http, "/tools/penstock")
        job = await app.enqueue_payload("mail.send", '{"to": "a"}')
        for path in (*PAGES, f"jobs/{job.id}"):
            text = await browser.text(path)
            found = re.findall(r'(?:href|src|action|data-live)="([^"#]+)"', text)
            assert found
            assert [
                address for address in found if not address.startswith("/tools/penstock/")
            ] == []
        answer = await browser.send(f"jobs/{job.id}/cancel")
        assert answer.headers["location"] == f"/tools/penstock/jobs/{job.id}"
        assert "The job is cancelled." in await browser.follow(answer)


async def test_the_login_is_below_the_mount_too(log_in: Any, server: FastAPI) -> None:
    await log_in(Scope.READ)
    whole = Starlette(routes=[Mount("/tools", app=server)])
    transport = httpx.ASGITransport(whole)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        answer = await http.get("/tools/jobs?status=failed")
        assert answer.headers["location"] == "/tools/login?next=jobs%3Fstatus%3Dfailed"
        sent = await http.post("/tools/jobs/new", headers={"Origin": "http://localhost"})
        assert sent.headers["location"] == "/tools/login"


@pytest.mark.parametrize(
    ("address", "path"),
    [
        ("/tools/jobs?a=1", "jobs?a=1"),
        ("https://other.example/tools/jobs", "jobs"),
        ("/jobs", None),
        ("//other.example/tools/", ""),
        ("/tools//other.example", "other.example"),
        ("/tools/\\\\other.example", "other.example"),
        ("javascript:alert(1)", None),
        ("http://[", None),
        ("", None),
    ],
)
def test_an_address_is_followed_within_the_mount_only(address: str, path: str | None) -> None:
    links = Links(Request({"type": "http", "root_path": "/tools"}))
    assert links.inside(address) == path
