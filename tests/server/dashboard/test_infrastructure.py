import asyncio
import re
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Mount

from penstock import Penstock
from penstock.model.errors import StoreError
from penstock.server.access.scopes import Scope
from penstock.server.dashboard import live as live_module
from penstock.server.dashboard import notices
from penstock.server.dashboard.assets import TYPES, content_of, files
from penstock.server.dashboard.charts import Chart, Line, round_up, stack
from penstock.server.dashboard.live import Live
from penstock.server.dashboard.notices import Notice
from penstock.server.dashboard.pages import Desk
from penstock.server.dashboard.render import FOLDER, count, percent
from penstock.server.dashboard.visit import Links
from tests.server.dashboard.conftest import Browser

PAGES = ("", "jobs", "jobs/new", "jobs/new?type=mail.send")


@pytest.mark.parametrize("path", PAGES)
async def test_a_page_forbids_everything_that_is_not_its_own(path: str, browser: Browser) -> None:
    answer = await browser.open(path)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"


def test_no_template_has_a_style_or_a_script_of_its_own() -> None:
    for path in FOLDER.rglob("*.html"):
        text = path.read_text()
        assert not re.search(r"\sstyle=|<style|\son\w+=|javascript:|hx-on", text), path
        assert not re.search(r"<script(?![^>]* src=)", text), path
        assert "| safe" not in text, path


def test_every_file_that_ships_has_a_type() -> None:
    known = {path.suffix for path in files().values()}
    assert known <= TYPES.keys()
    assert "app.css" in files()


async def test_a_file_under_its_hash_is_kept_for_good(browser: Browser) -> None:
    version = content_of("app.css")[1]
    assert (
        "immutable" in (await browser.open(f"static/app.css?v={version}")).headers["cache-control"]
    )
    assert (await browser.open("static/app.css?v=other")).headers["cache-control"] == "no-cache"
    assert (await browser.open("static/../install.py")).status_code == 404
    assert (await browser.open("static/%2e%2e/install.py")).status_code == 404


async def test_pages_work_without_the_browser_libraries(
    browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    from penstock.server.dashboard import assets

    monkeypatch.setattr(assets, "has", lambda name: "vendor" not in name)
    text = await browser.text("")
    assert "vendor" not in text
    assert "app.css" in text


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


async def test_whoever_is_unknown_is_led_to_the_login(log_in: Any, http: httpx.AsyncClient) -> None:
    await log_in(Scope.READ)
    answer = await http.get("/jobs?status=failed")
    assert answer.status_code == 303
    assert answer.headers["location"] == "/login?next=jobs%3Fstatus%3Dfailed"


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
        ("", None),
    ],
)
def test_an_address_is_followed_within_the_mount_only(address: str, path: str | None) -> None:
    links = Links(Request({"type": "http", "root_path": "/tools"}))
    assert links.inside(address) == path


async def test_a_store_that_is_away_for_a_moment_ends_no_tab(
    app: Penstock, monkeypatch: Any
) -> None:
    monkeypatch.setattr(live_module, "PAUSE_SECONDS", 0.0)
    subscribe, failures, back = app.store.subscribe, 2, asyncio.Event()

    def failing() -> Any:
        nonlocal failures
        failures -= 1
        if failures >= 0:
            raise StoreError("sqlite", "is away")
        back.set()
        return subscribe()

    monkeypatch.setattr(app.store, "subscribe", failing)
    live = Live(app.store)
    tab = live.open()
    assert await anext(tab) == "retry: 2000\n\n"
    async with asyncio.timeout(10):
        waiting = asyncio.ensure_future(anext(tab))
        await back.wait()
        await app.enqueue_payload("mail.send", '{"to": "a"}')
        assert await waiting == "event: changed\ndata: 1\n\n"
    live.close()
    async for _ in tab:
        pass


async def test_the_store_is_looked_at_once_for_many_pages(app: Penstock) -> None:
    desk = Desk(app)
    seen = await asyncio.gather(*(desk.glance() for _ in range(5)))
    assert all(each is seen[0] for each in seen)


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
    "change",
    [
        {"csrf": ""},
        {"csrf": "somebody-elses"},
        {"Origin": "https://evil.example"},
        {"Sec_Fetch_Site": "cross-site"},
    ],
)
async def test_a_form_of_another_site_changes_nothing(
    change: dict[str, str], browser: Browser, app: Penstock
) -> None:
    job = await app.enqueue_payload("mail.send", '{"to": "a"}')
    forms: dict[str, dict[str, str]] = {
        f"jobs/{job.id}/cancel": {},
        "jobs/bulk": {"action": "cancel", "id": job.id, "sure": "yes"},
        "jobs/new": {"type": "mail.send", "payload": '{"to": "b"}'},
    }
    for path, fields in forms.items():
        assert (await browser.send(path, fields, **change)).status_code == 403
    assert [found.status for found in await app.find()] == ["queued"]


async def test_a_form_that_is_too_large_or_no_form_is_refused(browser: Browser) -> None:
    large = await browser.send("jobs/new", {"type": "mail.send", "payload": "x" * 70_000})
    assert large.status_code == 413
    other = await browser.send("jobs/new", Content_Type="application/json")
    assert other.status_code == 415
    many = await browser.send("jobs/bulk", [("id", "a")] * 2_500)
    assert many.status_code == 400


def test_a_notice_is_read_with_its_own_key_only() -> None:
    value = notices.written(Notice("done"), "key")
    assert notices.read(value, "key") == Notice("done")
    assert notices.read(value, "other") is None
    assert notices.read("x" + value, "key") is None
    assert notices.read("nonsense", "key") is None


async def test_a_notice_is_shown_once(browser: Browser, app: Penstock) -> None:
    job = await app.enqueue_payload("mail.send", '{"to": "a"}')
    answer = await browser.send(f"jobs/{job.id}/pause")
    assert "The job is paused." in await browser.follow(answer)
    assert "The job is paused." not in await browser.text(f"jobs/{job.id}")


async def test_a_refused_action_is_told_on_the_page_it_came_from(
    browser: Browser, app: Penstock
) -> None:
    job = await app.enqueue_payload("mail.send", '{"to": "a"}')
    page = f"http://localhost/jobs/{job.id}?x=1"
    answer = await browser.send(f"jobs/{job.id}/requeue", Referer=page)
    assert answer.headers["location"] == f"/jobs/{job.id}?x=1"
    assert 'class="notice bad"' in await browser.follow(answer)


async def test_one_subscription_serves_all_tabs(app: Penstock, monkeypatch: Any) -> None:
    monkeypatch.setattr(live_module, "PAUSE_SECONDS", 0.0)
    subscribed = 0
    subscribe = app.store.subscribe

    def counted() -> Any:
        nonlocal subscribed
        subscribed += 1
        return subscribe()

    monkeypatch.setattr(app.store, "subscribe", counted)
    live = Live(app.store)
    tabs = [live.open() for _ in range(5)]
    for tab in tabs:
        assert await anext(tab) == "retry: 2000\n\n"
    waiting = [asyncio.ensure_future(anext(tab)) for tab in tabs]
    await asyncio.sleep(0)
    await app.enqueue_payload("mail.send", '{"to": "a"}')
    async with asyncio.timeout(10):
        assert set(await asyncio.gather(*waiting)) == {"event: changed\ndata: 1\n\n"}
    assert (subscribed, live.tabs) == (1, 5)
    live.close()
    async with asyncio.timeout(10):
        for tab in tabs:
            async for _ in tab:
                pass
    assert live.tabs == 0


async def test_an_idle_tab_hears_a_heartbeat(app: Penstock, monkeypatch: Any) -> None:
    monkeypatch.setattr(live_module, "HEARTBEAT_SECONDS", 0.01)
    live = Live(app.store)
    tab = live.open()
    assert await anext(tab) == "retry: 2000\n\n"
    async with asyncio.timeout(10):
        while await anext(tab) != ": still here\n\n":
            pass
    live.close()
    async for _ in tab:
        pass


def test_numbers_are_written_as_people_do() -> None:
    assert [count(n) for n in (None, 12458, 0.25, 3.0, 1234.5)] == [
        "–",
        "12,458",
        "0.2",
        "3",
        "1,234",
    ]
    assert [percent(n) for n in (None, 1.0, 0.99999, 0.5)] == ["–", "100 %", "99.9 %", "50 %"]
    assert [round_up(n) for n in (0, 0.03, 7, 12, 50, 51)] == pytest.approx(
        [1, 0.03, 8, 15, 50, 60]
    )


def test_a_chart_draws_gaps_and_hostile_labels_as_text() -> None:
    chart = Chart([0, 1_000, 2_000, 3_000], [Line("<b>", "good", [1, None, 2, 1])])
    assert chart.drawing().count("M") == 2 + 3
    assert "<b>" not in chart.drawing()
    assert str(stack([("queued", 1), ("failed", 0), ('"><b>', 9)], 10)).count("<rect") == 2
    assert "<b>" not in stack([('"><b>', 9)], 10)
