from msgspec.structs import asdict

from penstock import Penstock
from penstock.server.dashboard.views.workers import crew_of, unserved
from penstock.store.contract import WorkerInfo
from tests.server.dashboard.conftest import Browser
from tests.server.dashboard.furnish import a_beat


def heard_of(age_ms: int) -> WorkerInfo:
    beat = asdict(a_beat())
    return WorkerInfo(**beat, started_at=0, heartbeat_at=0, heartbeat_age_ms=age_ms)


async def test_a_worker_is_shown_with_all_it_says(browser: Browser, app: Penstock) -> None:
    app.store.workers.beat(a_beat(poll_age_ms=65_000))
    await app.enqueue_payload("import", '{"file": "b"}')
    text = await browser.text("workers")
    for words in ("mailer", "host-a, process 1", "12.5 %", "80 MB", "mail.send", "1 min 5 s ago"):
        assert words in text
    assert "Waiting for a worker that knows them" in text
    assert 'href="/jobs?type=import&amp;status=queued"' in text


def test_a_silent_worker_counts_for_nothing_but_being_silent() -> None:
    crew = crew_of([heard_of(10), heard_of(60_000)])
    assert (crew.alive, crew.silent, crew.running, crew.concurrency) == (1, 1, 2, 10)
    waiting = {"mail.send": 3, "import": 1}
    assert unserved(waiting, [heard_of(10)]) == {"import": 1}
    assert unserved(waiting, [heard_of(60_000)]) == {"import": 1, "mail.send": 3}


async def test_many_workers_come_in_pages(browser: Browser, app: Penstock) -> None:
    for n in range(520):
        app.store.workers.beat(a_beat(f"host-a:{n}:x"))
    seen = await browser.walk("workers", r'<tr id="worker-host-a:(\d+):x"')
    assert sorted(seen) == sorted(str(n) for n in range(520))
