"""What one handler says must not cost its neighbours their settlements or their words."""

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from penstock import Context, Penstock, Retry, Snooze, Status, Worker
from penstock.model.errors import InvalidOption
from penstock.model.store_errors import StoreUnavailable
from penstock.worker import pump


async def test_a_settlement_the_store_cannot_write_is_buried_and_the_others_are_kept(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pump, "RETRY_SECONDS", 0.001)
    settle = app.store.jobs.settle

    async def refusing(owner: str, settlements: Any) -> list[str]:
        for settlement in settlements:
            if getattr(settlement, "result", None) == '"bad"':
                raise OverflowError("int too big to convert")
        return await settle(owner, settlements)

    monkeypatch.setattr(app.store.jobs, "settle", refusing)

    @app.job
    async def say(word: str) -> str:
        return word

    good = [await say.enqueue("good") for _ in range(5)]
    bad = await say.enqueue("bad")
    await Worker(app, burst=True, upkeep=False).run()
    assert {(await job.get()).status for job in good} == {Status.COMPLETED}
    assert (await bad.get()).status is Status.DEAD_LETTER


@pytest.mark.parametrize("outcome", [Snooze(1e300), Retry(after=1e300)])
async def test_no_outcome_waits_longer_than_a_year(
    app: Penstock, drain: Any, outcome: Exception
) -> None:
    @app.job
    async def later() -> None:
        raise outcome

    job = await later.enqueue()
    await drain()
    found = await job.get()
    assert found.scheduled_at - found.created_at <= 366 * 86_400_000 + 1_000


async def test_progress_that_is_no_number_is_refused(app: Penstock, drain: Any) -> None:
    refused: list[str] = []

    @app.job
    async def report(ctx: Context) -> None:
        ctx.log(5)  # type: ignore[arg-type]
        try:
            ctx.progress("half")  # type: ignore[arg-type]
        except InvalidOption as error:
            refused.append(str(error))

    job = await report.enqueue()
    await drain()
    assert "percent" in refused[0]
    assert [line.message for line in await app.logs(job.id)] == ["5"]


async def test_an_enqueue_into_a_deleted_file_is_not_acknowledged(tmp_path: Path) -> None:
    app = Penstock(f"sqlite:///{tmp_path}/work.db")

    @app.job
    async def task() -> None: ...

    async with app:
        await task.enqueue()
        (tmp_path / "work.db").rename(tmp_path / "elsewhere.db")
        with pytest.raises(StoreUnavailable, match="moved or deleted"):
            await task.enqueue()


forked = Penstock("sqlite:///unused.db")


@forked.job(run_in="process", max_retries=0)
def forker(number: int) -> str:
    if os.fork() == 0:
        sys.exit(0)
    return f"forker {number}"


@forked.job(run_in="process")
def after(number: int) -> str:
    time.sleep(0.05)
    return f"after {number}"


async def test_a_handler_that_forks_answers_once_and_only_for_itself(tmp_path: Path) -> None:
    forked.settings = forked.settings.replace(url=f"sqlite:///{tmp_path}/work.db")
    forked.__dict__.pop("store", None)
    async with forked:
        jobs = [await forker.enqueue(n) for n in range(2)] + [
            await after.enqueue(n) for n in range(4)
        ]
        await Worker(forked, burst=True, upkeep=False, concurrency=2).run()
        answers = [await job.result(timeout=30) for job in jobs]
    assert answers == ["forker 0", "forker 1", "after 0", "after 1", "after 2", "after 3"]
