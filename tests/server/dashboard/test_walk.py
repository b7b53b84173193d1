"""Every page and every form, found in the server's own list, so that none can be forgotten."""

import re
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from fastapi import FastAPI

from penstock import Penstock
from penstock.server.access.identity import Scope
from tests.server.dashboard.conftest import Browser
from tests.server.dashboard.furnish import HOSTILE, Furnished, furnish, page_routes, picture

ENDLESS = {"/live"}
FOREIGN = [
    {"csrf": ""},
    {"csrf": "somebody-elses"},
    {"Origin": "https://evil.example"},
    {"Sec_Fetch_Site": "cross-site"},
]


def pages(have: Furnished) -> dict[str, str]:
    """An address for every page."""
    schedule = f"name={quote(have.schedule)}"
    return {
        "/": "",
        "/jobs": "jobs?type=mail.send",
        "/jobs/new": "jobs/new?type=mail.send",
        "/jobs/{job_id}": f"jobs/{have.job_id}",
        "/dead": "dead?closed=true",
        "/dead/letters": "dead/letters?type=mail.send&resolution=investigating",
        "/dead/purge": "dead/purge?type=mail.send&days=0",
        "/dead/groups/{group}": f"dead/groups/{have.group}",
        "/dead/groups/{group}/purge": f"dead/groups/{have.group}/purge",
        "/dead/letters/{job_id}": f"dead/letters/{have.job_id}",
        "/dead/letters/{job_id}/purge": f"dead/letters/{have.job_id}/purge",
        "/schedules": "schedules",
        "/schedules/show": f"schedules/show?{schedule}",
        "/schedules/remove": f"schedules/remove?{schedule}",
        "/schedules/new": "schedules/new?type=mail.send",
        "/schedules/edit": f"schedules/edit?{schedule}",
        "/queues": "queues",
        "/workers": "workers",
        "/alerts": "alerts",
        "/alerts/{name:path}": f"alerts/{quote(have.alert, safe='')}",
        "/audit": "audit",
        "/access": "access",
        "/access/users/remove": f"access/users/remove?name={have.user}",
        "/api": "api",
        "/login": "login?next=jobs",
    }


def forms(have: Furnished) -> dict[str, tuple[str, dict[str, str]]]:
    """An address and fields for every form, such as would change something."""
    schedule = {"name": have.schedule}
    group, letter = f"dead/groups/{have.group}", f"dead/letters/{have.job_id}"
    return {
        "/jobs/new": ("jobs/new", {"type": "mail.send", "payload": '{"to": "b"}'}),
        "/jobs/bulk": ("jobs/bulk", {"action": "requeue", "id": have.job_id, "sure": "yes"}),
        "/jobs/{job_id}/{action}": (f"jobs/{have.job_id}/requeue", {}),
        "/jobs/{job_id}/run-again": (f"jobs/{have.job_id}/run-again", {}),
        "/dead/purge": ("dead/purge", {"type": "mail.send"}),
        "/dead/groups/{group}/replay": (f"{group}/replay", {"canary": "1"}),
        "/dead/groups/{group}/release": (f"{group}/release", {"rate": "10/s"}),
        "/dead/groups/{group}/resolve": (f"{group}/resolve", {"resolution": "ignored"}),
        "/dead/groups/{group}/purge": (f"{group}/purge", {}),
        "/dead/letters/{job_id}/amend": (f"{letter}/amend", {"payload": '{"to": "c"}'}),
        "/dead/letters/{job_id}/requeue": (f"{letter}/requeue", {}),
        "/dead/letters/{job_id}/resolve": (f"{letter}/resolve", {"resolution": "ignored"}),
        "/dead/letters/{job_id}/purge": (f"{letter}/purge", {}),
        "/schedules/pause": ("schedules/pause", schedule),
        "/schedules/resume": ("schedules/resume", schedule),
        "/schedules/run": ("schedules/run", schedule),
        "/schedules/remove": ("schedules/remove", schedule),
        "/schedules/edit": (
            "schedules/edit",
            {"name": "n", "type": "mail.send", "payload": '{"to": "b"}', "kind": "cron"}
            | {"cron": "0 4 * * *"},
        ),
        "/queues/pause": ("queues/pause", {"scope": "queue", "name": "mail"}),
        "/queues/resume": ("queues/resume", {"scope": "queue", "name": "mail"}),
        "/queues/limits": ("queues/limits", {"scope": "queue", "name": "mail", "depth": "9"}),
        "/queues/limits/remove": (
            "queues/limits/remove",
            {"scope": "key", "name": have.breaker, "kind": "rate"},
        ),
        "/queues/breakers/reset": ("queues/breakers/reset", {"name": have.breaker}),
        "/alerts/acknowledge": ("alerts/acknowledge", {"name": have.alert, "note": "I know."}),
        "/audit/verify": ("audit/verify", {}),
        "/access/tokens": ("access/tokens", {"name": "t", "scope": "read"}),
        "/access/tokens/revoke": ("access/tokens/revoke", {"id": have.token_id}),
        "/access/users": (
            "access/users",
            {"name": "bob", "password": "a long password", "scope": "read"},
        ),
        "/access/users/password": (
            "access/users/password",
            {"name": have.user, "password": "another password"},
        ),
        "/access/users/remove": ("access/users/remove", {"name": have.user}),
        "/login": ("login", {"name": have.user, "password": "a long password"}),
        "/logout": ("logout", {}),
    }


@pytest.mark.every_store
@pytest.mark.thorough("postgres", "valkey", "postgres+redis")
async def test_no_page_changes_anything_and_hostile_text_is_text(
    admin: Browser, app: Penstock, server: FastAPI
) -> None:
    have = await furnish(app, server, HOSTILE)
    known = pages(have)
    assert known.keys() == page_routes("GET") - ENDLESS
    before = await picture(app)
    for path in known.values():
        for headers in ({}, {"HX-Request": "true"}):
            answer = await admin.open(path, headers=headers)
            assert answer.status_code in (200, 303), (path, answer.text)
            assert "<img" not in answer.text, path
            assert "<script>" not in answer.text, path
            assert "&amp;49" not in answer.text, path
            assert ("<html" in answer.text) is (not headers and answer.status_code == 200), path
    assert await picture(app) == before


async def test_a_form_with_what_a_store_cannot_keep_is_refused(
    admin: Browser, app: Penstock, server: FastAPI
) -> None:
    have = await furnish(app, server, "plain")
    before = await picture(app)
    for path, fields in forms(have).values():
        assert (await admin.send(path, {**fields, "notes": "a\0b"})).status_code == 400, path
    assert await picture(app) == before


@pytest.mark.parametrize("change", FOREIGN)
async def test_a_form_of_another_site_changes_nothing(
    change: dict[str, str], admin: Browser, app: Penstock, server: FastAPI
) -> None:
    have = await furnish(app, server, "plain")
    known = forms(have)
    assert known.keys() == page_routes("POST")
    before = await picture(app)
    for path, fields in known.values():
        answer = await admin.send(path, fields, **change)
        assert answer.status_code == 403, (path, answer.status_code)
    assert await picture(app) == before


@pytest.mark.every_store
@pytest.mark.thorough("postgres", "valkey", "postgres+redis")
async def test_every_form_of_our_own_is_taken(
    admin: Browser, app: Penstock, server: FastAPI
) -> None:
    have = await furnish(app, server, "plain")
    for path, fields in forms(have).values():
        if path not in ("login", "logout"):
            # 422: of some that are about the same job, the first changed what the others need.
            assert (await admin.send(path, fields)).status_code in (200, 303, 422), path
    assert len(await app.store.audit.page(0, 1000)) > 20


async def test_who_may_only_read_changes_nothing_and_is_offered_nothing(
    log_in: Any, app: Penstock, server: FastAPI
) -> None:
    have = await furnish(app, server, "plain")
    reader: Browser = await log_in(Scope.READ)
    before = await picture(app)
    for path, fields in forms(have).values():
        if path not in ("login", "logout", "audit/verify"):
            assert (await reader.send(path, fields)).status_code == 403, path
    assert await picture(app) == before
    for path in ("dead", f"dead/groups/{have.group}", f"dead/letters/{have.job_id}", "schedules"):
        text = await reader.text(path)
        assert re.findall(r'method="post" action="([^"]*)"', text) == ["/logout"], path
    for path in ("queues", "workers", "alerts"):
        text = await reader.text(path)
        assert re.findall(r'method="post" action="([^"]*)"', text) == ["/logout"], path


async def test_all_of_it_is_closed_to_who_did_not_log_in(
    admin: Browser, http: httpx.AsyncClient, app: Penstock, server: FastAPI
) -> None:
    have = await furnish(app, server, "plain")
    before = await picture(app)
    for path in pages(have).values():
        if not path.startswith("login"):
            answer = await http.get(f"/{path}")
            assert (answer.status_code, answer.headers["location"][:6]) == (303, "/login"), path
    for path, fields in forms(have).values():
        if not path.startswith("login"):
            answer = await http.post(f"/{path}", data=fields)
            assert (answer.status_code, answer.headers["location"][:6]) == (303, "/login"), path
    assert await picture(app) == before


@pytest.mark.every_store
async def test_an_empty_installation_has_every_page(browser: Browser) -> None:
    paths = ("", "jobs", "dead", "dead/letters", "schedules", "schedules/new", "queues", "workers")
    for path in (*paths, "alerts", "audit", "access"):
        assert "<h1>" in await browser.text(path)


@pytest.mark.every_store
@pytest.mark.thorough("postgres", "valkey", "postgres+redis")
async def test_who_belongs_to_a_tenant_sees_only_what_is_theirs(
    log_in: Any, app: Penstock, server: FastAPI
) -> None:
    have = await furnish(app, server, "theirs", tenant="south")
    own: Browser = await log_in(Scope.OPERATE, tenant_id="north")
    for path in ("", "jobs", "dead?closed=true", "dead/letters", "schedules", "audit"):
        assert "theirs" not in await own.text(path), path
    for path in ("jobs", "dead/letters", "schedules", "audit"):
        assert (await own.open(f"{path}?tenant=south")).status_code == 403, path
    for path in (
        f"dead/groups/{have.group}",
        f"dead/groups/{have.group}/purge",
        f"dead/letters/{have.job_id}",
        "schedules/show?name=theirs",
    ):
        assert (await own.open(path)).status_code == 404, path
    for path in (
        "schedules/show?name=theirs&tenant=south",
        "queues",
        "workers",
        "alerts",
        "access",
        f"alerts/{have.alert}",
    ):
        assert (await own.open(path)).status_code == 403, path
    before = await picture(app)
    for path, fields in forms(have).values():
        if path not in ("login", "logout", "jobs/bulk", "schedules/edit"):
            answer = await own.send(path, {**fields, "tenant": "south"})
            assert answer.status_code in (303, 403, 404), path
    after = await picture(app)
    assert (after[:6], after[7]) == (before[:6], before[7])
