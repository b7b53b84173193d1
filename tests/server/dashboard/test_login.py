import re
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.routing import Mount

from penstock import Penstock
from penstock.server.access import identity
from penstock.server.access.identity import Scope
from penstock.server.access.users import COOKIE
from penstock.server.dashboard.views.access import LOGIN_COOKIE
from tests.server.dashboard.conftest import PASSWORD, TOKEN, Browser

GOALS = {
    "jobs": "jobs",
    "jobs?text=a%26b": "jobs?text=a%26b",
    "": "",
    "dead/letters?resolution=pending": "dead/letters?resolution=pending",
    "https://evil.example/": "",
    "javascript:alert(1)": "",
    "//evil.example": "",
    "/evil.example": "",
    "\\\\evil.example": "",
    "/\\evil.example": "",
    "../../other": "",
    "jobs/..%2f..%2fother": "",
    "jobs/%2e%2e/other": "",
    "jobs/..\\other": "",
    "\r\nSet-Cookie: a=b": "",
}


@pytest.fixture
async def ana(server: FastAPI) -> str:
    users = server.state.server.users
    await users.create("ana", PASSWORD, (Scope.ADMIN,), by="test")
    return "ana"


async def tried(browser: Browser, name: str, password: str, **fields: str) -> httpx.Response:
    """Log in as a person does: open the form, fill it in, send it."""
    found = TOKEN.search(await browser.text("login"))
    assert found is not None
    given = {"name": name, "password": password, **fields}
    return await browser.send("login", given, csrf=found[1])


async def test_whoever_logs_in_comes_to_where_they_wanted(browser: Browser, ana: str) -> None:
    asked = await browser.open("jobs?status=failed")
    assert asked.headers["location"] == "/login?next=jobs%3Fstatus%3Dfailed"
    form = await browser.text("login?next=jobs%3Fstatus%3Dfailed")
    assert 'name="next" value="jobs?status=failed"' in form
    answer = await tried(browser, ana, PASSWORD, next="jobs?status=failed")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/jobs?status=failed"
    cookie = next(c for c in answer.headers.get_list("set-cookie") if c.startswith(COOKIE))
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Path=/;" in cookie
    assert "user:ana" in await browser.text("jobs")
    assert (await browser.open("login?next=dead")).headers["location"] == "/dead"


async def test_a_wrong_name_and_a_wrong_password_are_told_alike(
    browser: Browser, ana: str, app: Penstock
) -> None:
    answers = [
        await tried(browser, "ana", "not the password"),
        await tried(browser, "bob", "not the password"),
        await tried(browser, "", ""),
        await tried(browser, "<script>", PASSWORD),
    ]
    told = {re.sub(r'value="[^"]*"| autofocus', "", each.text) for each in answers}
    assert {each.status_code for each in answers} == {401}
    assert len(told) == 1
    assert "The name or the password is wrong." in told.pop()
    assert await app.store.records.list("session") == []
    entries = await app.store.audit.page(0)
    assert {(entry.action, entry.subject) for entry in entries} == {("session.refused", "users")}
    assert not any("bob" in entry.details for entry in entries)


async def test_who_tries_too_often_has_to_wait(
    browser: Browser, ana: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "monotonic", lambda: 0.0)
    answers = [await tried(browser, "ana", "not the password") for _ in range(7)]
    assert [each.status_code for each in answers][:5] == [401] * 5
    assert answers[-1].status_code == 429
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert "Too many tries" in answers[-1].text
    assert (await tried(browser, "ana", PASSWORD)).status_code == 429


@pytest.mark.parametrize("root", ["", "/tools/penstock"])
async def test_a_login_leads_nowhere_else(root: str, server: FastAPI, ana: str) -> None:
    whole = Starlette(routes=[Mount(root, app=server)]) if root else server
    transport = httpx.ASGITransport(whole)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        # There may be only so many logins; whoever is in already is led on in the same way.
        for number, (goal, path) in enumerate(GOALS.items()):
            answer = await http.get(f"{root}/login?next={quote(goal)}")
            if number % 4 == 0:
                http.cookies.clear()
                answer = await tried(Browser(http, root), ana, PASSWORD, next=goal)
            assert answer.status_code == 303, goal
            found = httpx.URL("http://localhost").join(answer.headers["location"])
            assert (found.host, str(found.raw_path, "ascii")) == ("localhost", f"{root}/{path}")


async def test_a_login_form_of_another_site_lets_nobody_in(
    browser: Browser, ana: str, app: Penstock
) -> None:
    given = {"name": ana, "password": PASSWORD}
    token = TOKEN.search(await browser.text("login"))
    assert token is not None
    for change in (
        {"csrf": ""},
        {"csrf": "somebody-elses"},
        {"csrf": token[1], "Origin": "https://evil.example"},
        {"csrf": token[1], "Sec_Fetch_Site": "cross-site"},
    ):
        assert (await browser.send("login", given, **change)).status_code == 403
    browser.http.cookies.delete(LOGIN_COOKIE)
    assert (await browser.send("login", given, csrf=token[1])).status_code == 403
    assert await app.store.records.list("session") == []


async def test_a_logout_ends_the_session(browser: Browser, ana: str, app: Penstock) -> None:
    await tried(browser, ana, PASSWORD)
    cookie = browser.http.cookies[COOKIE]
    answer = await browser.send("logout")
    assert answer.headers["location"] == "/login"
    assert await app.store.records.list("session") == []
    browser.http.cookies.set(COOKIE, cookie)
    assert (await browser.open("jobs")).status_code == 303
    actions = [(entry.actor, entry.action) for entry in await app.store.audit.page(0)]
    assert actions == [("user:ana", "session.begin"), ("user:ana", "session.end")]


async def test_a_new_login_ends_the_old_session(browser: Browser, ana: str, app: Penstock) -> None:
    form = TOKEN.search(await browser.text("login"))
    assert form is not None
    secret = browser.http.cookies[LOGIN_COOKIE]
    given = {"name": ana, "password": PASSWORD}
    await browser.send("login", given, csrf=form[1])
    [old] = await app.store.records.list("session")
    browser.http.cookies.set(LOGIN_COOKIE, secret)
    assert (await browser.send("login", given, csrf=form[1])).status_code == 303
    [new] = await app.store.records.list("session")
    assert new.name != old.name


async def test_before_there_are_users_nobody_logs_in(browser: Browser) -> None:
    browser.http.cookies.set(COOKIE, "of a session that is over")
    assert (await browser.open("jobs")).status_code == 200
    assert (await browser.open("login?next=jobs")).headers["location"] == "/jobs"


async def test_without_users_the_form_says_how_to_make_one(
    browser: Browser, server: FastAPI
) -> None:
    await server.state.server.tokens.create("t", (Scope.READ,), by="test")
    assert "penstock users add NAME" in await browser.text("login")


async def test_a_login_page_shows_nothing_of_the_installation(
    browser: Browser, ana: str, app: Penstock
) -> None:
    await app.enqueue_payload("mail.send", '{"to": "a"}')
    text = await browser.text("login")
    assert "mail" not in text
    assert 'class="side"' not in text


async def test_a_user_who_may_only_enqueue_can_leave(
    log_in: Any, app: Penstock, server: FastAPI
) -> None:
    browser: Browser = await log_in(Scope.ENQUEUE)
    csrf = TOKEN.search(await browser.text("jobs/new?type=mail.send"))
    assert csrf is not None
    answer = await browser.send("logout", csrf=csrf[1])
    assert answer.headers["location"] == "/login"
    assert await app.store.records.list("session") == []
