import re

import pytest
from msgspec.structs import asdict

from penstock import Penstock
from penstock.server.dashboard.views.workers import crew_of
from penstock.store.contract import WorkerInfo
from proof.conformance.build import OTHER, claim_all
from tests.server.dashboard.conftest import Browser
from tests.server.dashboard.furnish import a_beat


def heard_of(age_ms: int) -> WorkerInfo:
    beat = asdict(a_beat())
    return WorkerInfo(**beat, started_at=0, heartbeat_at=0, heartbeat_age_ms=age_ms)


async def test_a_worker_is_shown_with_all_it_says(browser: Browser, app: Penstock) -> None:
    app.store.workers.beat(a_beat(poll_age_ms=65_000))
    await app.enqueue_payload("import", '{"file": "b"}')
    text = await browser.text("workers")
    for words in ("mailer", "host-a, process 1", "12.5 %", "80 MB", "mail.send", "1 min"):
        assert words in text
    assert "Types without a worker" in text
    assert 'href="/jobs?type=import&amp;status=queued"' in text


@pytest.mark.every_store
async def test_what_a_worker_runs_leads_to_its_rows(browser: Browser, app: Penstock) -> None:
    app.store.workers.beat(a_beat(running=1))
    app.store.workers.beat(a_beat(OTHER, running=0))
    for name in ("a", "b"):
        await app.enqueue_payload("mail.send", f'{{"to": "{name}"}}')
    [lease] = await claim_all(app.store, types=("mail.send",), limit=1)
    await claim_all(app.store, types=("mail.send",), owner=OTHER)
    for page in ("", "workers"):
        text = await browser.text(page)
        links = re.findall(r'href="/(jobs[?]status=in_progress&amp;worker=[^"]+)">1</a>', text)
        assert len(links) == 1
        rows = await browser.text(links[0].replace("&amp;", "&"))
        assert re.findall(r'<tr id="job-(\w+)"', rows) == [lease.id]


def test_a_silent_worker_counts_for_nothing_but_being_silent() -> None:
    crew = crew_of([heard_of(10), heard_of(60_000)])
    assert (crew.alive, crew.silent, crew.running, crew.concurrency) == (1, 1, 2, 10)


async def test_many_workers_come_in_pages(browser: Browser, app: Penstock) -> None:
    for n in range(520):
        app.store.workers.beat(a_beat(f"host-a:{n}:x"))
    seen = await browser.walk("workers", r'<tr id="worker-host-a:(\d+):x"')
    assert sorted(seen) == sorted(str(n) for n in range(520))


async def test_workers_are_listed_by_whether_they_are_alive(
    browser: Browser, app: Penstock
) -> None:
    app.store.workers.beat(a_beat())
    assert "mailer" in await browser.text("workers?state=alive")
    silent = await browser.text("workers?state=silent")
    assert "mailer" not in silent
    assert "No worker is silent." in silent
    assert (await browser.open("workers?state=odd")).status_code == 422
