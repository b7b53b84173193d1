import asyncio
from typing import Any

import pytest

from penstock import Penstock, Status, Worker
from penstock.model.errors import UnknownType
from penstock.model.store_errors import StoreUnavailable
from penstock.store.contract import Claim, Claimed
from penstock.testing import Signals, enqueued
from tests.worker.running import working


async def test_no_more_jobs_run_at_once_than_the_concurrency(app: Penstock) -> None:
    active = most = 0

    @app.job
    async def task() -> None:
        nonlocal active, most
        active += 1
        most = max(most, active)
        for _ in range(10):
            await asyncio.sleep(0)
        active -= 1

    await app.enqueue_many([task.new() for _ in range(50)])
    await Worker(app, concurrency=3, burst=True, upkeep=False).run()
    assert most == 3
    assert {job.status for job in await enqueued(app)} == {Status.COMPLETED}


async def test_threads_respect_the_concurrency_too(app: Penstock) -> None:
    signals = Signals()
    running: set[int] = set()

    @app.job
    def task(number: int) -> None:
        running.add(number)
        signals.send("seen", len(running))
        signals.send("started")
        signals.wait_in_thread("go")
        running.discard(number)

    await app.enqueue_many([task.new(n) for n in range(8)])
    worker = asyncio.create_task(Worker(app, concurrency=4, burst=True, upkeep=False).run())
    await signals.wait("started", times=4)
    signals.send("go")
    await worker
    assert max(signals.values("seen")) == 4


async def test_a_worker_takes_only_its_queues_types_and_urgent_jobs(app: Penstock) -> None:
    @app.job(aliases=["old_one"])
    async def one() -> None: ...

    @app.job
    async def two() -> None: ...

    jobs = {
        "mail": await one.options(queue="mail").enqueue(),
        "slow": await one.options(queue="slow", priority=8).enqueue(),
        "two": await two.options(queue="mail").enqueue(),
    }

    async def left(**options: Any) -> set[str]:
        await Worker(app, burst=True, upkeep=False, **options).run()
        found = {name: await job.get() for name, job in jobs.items()}
        return {name for name, job in found.items() if job.status is Status.QUEUED}

    assert await left(queues=["other"]) == {"mail", "slow", "two"}
    assert await left(queues=["mail"], types=["two"]) == {"mail", "slow"}
    assert await left(max_priority=5) == {"slow"}
    assert await left(types=["old_one"]) == set()


async def test_the_settings_say_what_a_worker_serves_if_nobody_else_does(app: Penstock) -> None:
    @app.job
    async def mine() -> None: ...

    @app.job
    async def theirs() -> None: ...

    app.settings = app.settings.replace(
        worker_types=["mine"], worker_queues=["mail"], worker_name="w1"
    )
    run = [await mine.options(queue="mail").enqueue()]
    left = [await mine.enqueue(), await theirs.options(queue="mail").enqueue()]
    worker = Worker(app, burst=True, upkeep=False)
    await worker.run()
    assert worker.name == "w1"
    assert [(await job.get()).status for job in run] == [Status.COMPLETED]
    assert {(await job.get()).status for job in left} == {Status.QUEUED}
    await Worker(app, types=["theirs"], queues=["mail"], burst=True, upkeep=False).run()
    assert (await left[1].get()).status is Status.COMPLETED


async def test_a_worker_refuses_types_the_application_does_not_have(app: Penstock) -> None:
    @app.job
    async def one() -> None: ...

    with pytest.raises(UnknownType):
        Worker(app, types=["nobody"])


async def test_a_burst_ends_when_nothing_is_left(app: Penstock) -> None:
    @app.job
    async def task() -> None: ...

    await Worker(app, burst=True, upkeep=False).run()
    await app.enqueue_many([task.new() for _ in range(700)])
    await task.options(delay=60).enqueue()
    worker = Worker(app, burst=True, upkeep=False)
    await worker.run()
    assert worker.counts == {"completed": 700, "failed": 0}
    assert await app.store.workers.list() == []


async def test_a_job_enqueued_while_the_worker_rests_starts_at_once(app: Penstock) -> None:
    app.settings = app.settings.replace(poll_interval=60)
    signals = Signals()

    @app.job
    async def task() -> None:
        signals.send("ran")

    async with working(app):
        await task.enqueue()
        await signals.wait("ran", timeout=30)
        await task.enqueue()
        await signals.wait("ran", times=2, timeout=30)


async def test_long_jobs_are_not_prefetched(app: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    claims = _recorded_claims(app, monkeypatch)
    signals = Signals()

    @app.job
    async def long() -> None:
        signals.send("started")
        await asyncio.to_thread(signals.wait_in_thread, "go")

    await app.enqueue_many([long.new() for _ in range(20)])
    async with working(app, concurrency=4):
        await signals.wait("started", times=4)
        others = await app.find(status="queued")
        assert len(others) == 16
        signals.send("go")
        await signals.wait("started", times=20)
    assert all(claim.limit <= 4 for claim in claims)


async def test_short_jobs_are_prefetched(app: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    claims = _recorded_claims(app, monkeypatch)

    @app.job
    async def short() -> None: ...

    await app.enqueue_many([short.new() for _ in range(1000)])
    await Worker(app, concurrency=4, burst=True, upkeep=False).run()
    assert max(claim.limit - claim.start for claim in claims) > 50
    assert len(claims) < 500


def _recorded_claims(app: Penstock, monkeypatch: pytest.MonkeyPatch) -> list[Claim]:
    claims: list[Claim] = []
    claim = app.store.jobs.claim

    async def recorded(wanted: Claim) -> Any:
        claims.append(wanted)
        return await claim(wanted)

    monkeypatch.setattr(app.store.jobs, "claim", recorded)
    return claims


async def test_jobs_of_a_claim_whose_answer_was_lost_go_back_at_once_and_count_nothing(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = app.store.jobs.claim
    answers: list[int] = []

    async def lossy(asked: Claim) -> Claimed:
        claimed = await claim(asked)
        answers.append(len(claimed.leases))
        if len(answers) == 1:
            raise StoreUnavailable("the store", "the answer was lost")
        return claimed

    @app.job
    async def task() -> None: ...

    handles = await app.enqueue_many([task.new() for _ in range(3)])
    monkeypatch.setattr(app.store.jobs, "claim", lossy)
    await Worker(app, concurrency=5, burst=True, upkeep=False).run()

    assert answers[0] == 3
    for handle in handles:
        job = await app.get(handle.id)
        assert (job.status, job.rescues, job.attempts) == (Status.COMPLETED, 0, 1)
        assert len(await app.executions(handle.id)) == 1


async def test_a_worker_whose_poll_came_due_while_it_looked_polls_at_once(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    @app.job
    async def task() -> None: ...

    async with working(app) as worker:
        pump = worker._pump
        async with pump._cycling:  # nothing else polls meanwhile
            pump._hungry, pump._next_poll = False, 0.0
            pump._wake.clear()
            async with asyncio.timeout(30):
                await pump._rest()
            assert pump._hungry


async def test_a_worker_without_a_free_slot_rests_until_something_ends(app: Penstock) -> None:
    signals = Signals()

    @app.job
    async def task() -> None:
        signals.send("started")
        await asyncio.to_thread(signals.wait_in_thread, "go")

    job = await task.enqueue()
    async with working(app, concurrency=1) as worker:
        await signals.wait("started")
        pump = worker._pump
        async with pump._cycling:
            pump._hungry, pump._next_poll = False, 0.0
            pump._wake.clear()
            resting = asyncio.create_task(pump._rest())
            for _ in range(100):
                await asyncio.sleep(0)
            assert not resting.done()
            signals.send("go")
            async with asyncio.timeout(30):
                await resting
        await job.result(timeout=30)
