import re
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from penstock import Penstock
from penstock.server.access.identity import Scope
from penstock.server.dashboard import links
from penstock.server.guard import CSRF_HEADER
from tests.server.dashboard.conftest import Browser

BODY = {"type": "mail.send", "payload": {"to": "a"}}
FROM_A_PAGE = {"Origin": "http://localhost", "Sec-Fetch-Site": "same-origin"}


async def test_the_page_of_the_api_hands_out_its_document_and_a_token_that_its_calls_need(
    admin: Browser, app: Penstock, server: FastAPI
) -> None:
    text = await admin.text("api")
    document = re.search(r'data-document="/([^"]+)"', text)
    token = re.search(r'data-token="([^"]+)"', text)
    assert document is not None
    assert token is not None
    assert (await admin.open(document[1])).json() == server.openapi()
    refused = await admin.http.post("/api/jobs", json=BODY, headers=FROM_A_PAGE)
    assert refused.status_code == 403
    sent = {**FROM_A_PAGE, CSRF_HEADER: token[1]}
    assert (await admin.http.post("/api/jobs", json=BODY, headers=sent)).status_code == 201
    assert len(await app.find(type="mail.send")) == 1


async def test_a_call_with_a_pasted_token_is_that_tokens_and_needs_no_token_of_the_page(
    admin: Browser, app: Penstock, server: FastAPI
) -> None:
    token, secret = await server.state.server.tokens.create("ci", (Scope.ENQUEUE,), by="test")
    sent = {**FROM_A_PAGE, "Authorization": f"Bearer {secret}"}
    assert (await admin.http.post("/api/jobs", json=BODY, headers=sent)).status_code == 201
    [job] = await app.find(type="mail.send")
    assert job.created_by == f"token:{token.id}"


async def test_the_api_stands_in_the_navigation_of_all_who_may_read(log_in: Any) -> None:
    reader: Browser = await log_in(Scope.READ, tenant_id="north")
    assert '<a class="tab" href="/api">' in await reader.text("jobs")
    assert "<h1>API</h1>" in await reader.text("api")


async def test_without_the_library_the_page_leads_to_the_document(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(links, "has", lambda name: "vendor" not in name)
    text = await browser.text("api")
    assert "vendor" not in text
    assert 'needs a library that the package was built without. The <a href="/api/openapi' in text


async def test_who_is_not_logged_in_is_led_to_the_login(
    admin: Browser, http: httpx.AsyncClient
) -> None:
    assert (await http.get("/api")).headers["location"] == "/login?next=api"
