from typing import Any

import httpx
import pytest

from penstock import Penstock
from penstock.server.access.identity import Scope
from tests.server.dashboard.conftest import Browser


async def broken(*_: Any) -> Any:
    raise ZeroDivisionError("it broke by itself")


async def test_whoever_is_unknown_is_led_to_the_login(log_in: Any, http: httpx.AsyncClient) -> None:
    await log_in(Scope.READ)
    answer = await http.get("/jobs?status=failed")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=jobs%3Fstatus%3Dfailed"


async def test_a_page_that_asks_for_itself_is_told_to_go_to_the_login(
    log_in: Any, http: httpx.AsyncClient
) -> None:
    await log_in(Scope.READ)
    answer = await http.get("/jobs", headers={"HX-Request": "true"})
    assert answer.status_code == 401
    assert answer.headers["hx-redirect"].startswith("/login")


async def test_an_error_is_a_page(browser: Browser) -> None:
    answer = await browser.open("jobs/nope")
    assert answer.status_code == 404
    assert "<h1>Not Found</h1>" in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [("nonsense", 404, "There is no such page."), ("audit/verify", 405, "only takes a form")],
)
async def test_an_address_that_is_not_there_is_a_page_too(
    path: str, status: int, words: str, browser: Browser
) -> None:
    answer = await browser.open(path, headers={"Accept": "text/html,*/*;q=0.8"})
    assert answer.status_code == status
    assert words in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.parametrize(
    ("path", "accept"),
    [("nonsense", "*/*"), ("api/nonsense", "text/html"), ("api/jobs/x/cancel", "text/html")],
)
async def test_a_program_is_told_by_a_document(path: str, accept: str, browser: Browser) -> None:
    answer = await browser.open(path, headers={"Accept": accept})
    assert answer.headers["content-type"] == "application/problem+json"


async def test_a_page_that_breaks_is_a_page_and_tells_where_to_look(
    browser: Browser, app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(app.store.audit, "find", broken)
    answer = await browser.open("audit")
    assert answer.status_code == 500
    assert f"its log says which, under {answer.headers['x-request-id']}" in answer.text
    assert "by itself" not in answer.text
    assert "default-src 'none'" in answer.headers["content-security-policy"]


async def test_a_refused_action_is_told_on_the_page_it_came_from(
    browser: Browser, app: Penstock
) -> None:
    job = await app.enqueue_payload("mail.send", '{"to": "a"}')
    page = f"http://localhost/jobs/{job.id}?x=1"
    answer = await browser.send(f"jobs/{job.id}/requeue", Referer=page)
    assert answer.headers["location"] == f"/jobs/{job.id}?x=1"
    assert 'class="notice bad"' in await browser.follow(answer)
