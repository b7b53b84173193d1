import asyncio
import re
import threading
from collections.abc import Callable
from typing import Any

import pytest

from penstock import Context, Penstock
from penstock.model.store_errors import StoreUnavailable
from penstock.store.contract import Report
from penstock.testing import Signals
from penstock.worker.reports import JobReporter, Reports
from tests.worker.running import working


async def test_a_line_said_while_a_flush_takes_the_others_is_written_by_the_next(
    app: Penstock, signals: Signals, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, loop = JobReporter.now, asyncio.get_running_loop()

    def flushed_meanwhile(self: JobReporter) -> int:
        """Have a flush come between the decision to keep a line and the line."""
        if not signals.values("written"):
            asyncio.run_coroutine_threadsafe(self._reports.flush(), loop)
            signals.wait_in_thread("written")
        return now(self)

    monkeypatch.setattr(JobReporter, "now", flushed_meanwhile)
    _signal_writes(app, monkeypatch, signals)

    @app.job
    def talk(ctx: Context) -> None:
        ctx.progress(50)
        ctx.log("between two flushes")

    job = await talk.enqueue()
    async with working(app):
        await job.result(timeout=30)
    assert await _lines(app, job.id) == ["between two flushes"]


@pytest.mark.parametrize("kind", ["loop", "thread"])
async def test_of_more_lines_than_can_be_kept_the_last_says_how_many_are_missing(
    app: Penstock, drain: Any, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.worker.reports.MAX_LINES", 100)

    def talk(ctx: Context) -> None:
        for number in range(150):
            ctx.log(str(number))

    async def talk_async(ctx: Context) -> None:
        talk(ctx)

    job = await app.job(name="talk")(talk if kind == "thread" else talk_async).enqueue()
    await drain()
    lines = await _lines(app, job.id)
    said = [line for line in lines if line.isdigit()]
    dropped = [re.match(r"([\d,]+) lines? .*dropped", line) for line in lines if not line.isdigit()]
    missing = sum(int(found[1].replace(",", "")) for found in dropped if found)
    assert len(said) + missing == 150
    if kind == "loop":  # nothing could be written meanwhile
        assert (len(said), missing) == (100, 50)


async def test_more_than_a_thousand_lines_at_once_are_all_written(
    app: Penstock, drain: Any
) -> None:
    @app.job
    async def talk(ctx: Context) -> None:
        for number in range(1_200):
            ctx.log(str(number))

    job = await talk.enqueue()
    await drain()
    assert await _lines(app, job.id) == [str(number) for number in range(1_200)]


async def test_a_checkpoint_that_cannot_be_written_loses_no_line(
    app: Penstock, monkeypatch: pytest.MonkeyPatch, drain: Any
) -> None:
    _fail(app, monkeypatch, lambda reports: any(report.checkpoint for report in reports))

    @app.job
    async def talk(ctx: Context) -> None:
        ctx.progress(10, "so far")
        ctx.log("before")
        with pytest.raises(StoreUnavailable):
            await ctx.save_checkpoint({"page": 1})
        ctx.log("after")

    job = await talk.enqueue()
    await drain()
    assert await _lines(app, job.id) == ["before", "after"]
    assert (await job.get()).progress_message == "so far"


async def test_words_that_a_flush_could_not_write_go_out_with_the_settlement(
    app: Penstock, monkeypatch: pytest.MonkeyPatch, signals: Signals
) -> None:
    failed = _fail(app, monkeypatch, lambda reports: True)

    @app.job
    async def talk(ctx: Context) -> None:
        ctx.log("first")
        await asyncio.to_thread(failed.wait_in_thread, "failed")
        ctx.log("second")

    job = await talk.enqueue()
    async with working(app):
        await job.result(timeout=30)
    assert await _lines(app, job.id) == ["first", "second"]


async def test_many_lines_are_written_before_the_next_flush_is_due(
    app: Penstock, monkeypatch: pytest.MonkeyPatch, signals: Signals
) -> None:
    monkeypatch.setattr("penstock.worker.reports.FLUSH_SECONDS", 3600)
    _signal_writes(app, monkeypatch, signals)

    @app.job
    def talk(ctx: Context) -> None:
        for number in range(500):
            ctx.log(str(number))
        signals.wait_in_thread("go")

    job = await talk.enqueue()
    async with working(app):
        await signals.wait("written")
        assert len(await _lines(app, job.id)) == 500
        signals.send("go")
        await job.result(timeout=30)


def test_that_lines_were_dropped_is_logged_while_nobody_has_to_wait(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    reports, free = Reports(app, "w"), list[bool]()

    class Log:
        def warning(self, *_: object, **__: object) -> None:
            thread = threading.Thread(
                target=lambda: free.append(reports.lock.acquire(blocking=False))
            )
            thread.start()
            thread.join()

    monkeypatch.setattr("penstock.worker.reports.MAX_LINES", 0)
    monkeypatch.setattr("penstock.worker.reports.log", Log())
    reports.put_back([Report(id="a", fence=1, logs=[(0, "info", "one")])])
    assert free == [True]


def _signal_writes(app: Penstock, monkeypatch: pytest.MonkeyPatch, signals: Signals) -> None:
    report = app.store.jobs.report

    async def signalled(owner: str, reports: list[Report]) -> list[str]:
        stale = await report(owner, reports)
        signals.send("written")
        return stale

    monkeypatch.setattr(app.store.jobs, "report", signalled)


def _fail(
    app: Penstock, monkeypatch: pytest.MonkeyPatch, when: Callable[[list[Report]], bool]
) -> Signals:
    """Have the first write of reports fail for which `when` holds, and signal `failed`."""
    signals, report = Signals(), app.store.jobs.report

    async def flaky(owner: str, reports: list[Report]) -> list[str]:
        if when(reports) and not signals.values("failed"):
            signals.send("failed")
            raise StoreUnavailable("work.db", "the disk is away")
        return await report(owner, reports)

    monkeypatch.setattr(app.store.jobs, "report", flaky)
    return signals


async def _lines(app: Penstock, job_id: str) -> list[str]:
    return [line.message for line in await app.logs(job_id, limit=100_000)]
