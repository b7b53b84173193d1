import asyncio
import gc
import time
import weakref
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from penstock import Context, Penstock, QueueFull, Settings, Worker
from penstock.app import admission
from penstock.app.admission import Capacity
from penstock.model.errors import InvalidOption, PenstockError
from penstock.model.job import NewJob
from penstock.testing import FakeClock
from tests.support.workers import beat

LIMIT = 4


@pytest.fixture
async def app(tmp_path: Path) -> AsyncIterator[Penstock]:
    settings = Settings(queue_limit=LIMIT, enqueue_timeout=30)
    async with Penstock(f"sqlite:///{tmp_path}/work.db", settings=settings) as made:
        made.job(task)
        yield made


async def task() -> None: ...


class Remembered(Capacity):
    """A capacity that can be referred to weakly."""

    __slots__ = ("__weakref__",)


async def fill(app: Penstock, jobs: int = LIMIT) -> None:
    await app.enqueue_many([app.find_type("task").new() for _ in range(jobs)])


async def depth(app: Penstock) -> int:
    return await app.store.jobs.depth("default", 1000)


async def work_off(app: Penstock) -> None:
    await Worker(app, burst=True, upkeep=False).run()


async def test_a_full_queue_refuses_less_urgent_jobs_at_once(app: Penstock) -> None:
    app.store.workers.beat(beat())
    await fill(app)
    with pytest.raises(
        QueueFull,
        match=r"'default' is full \(4 jobs queued.*come back in about.*or raise the limit with "
        r"`penstock limits set queue default --depth 8`",
    ) as e:
        await app.find_type("task").options(priority=6).enqueue()
    assert (e.value.queue, e.value.depth, e.value.limit) == ("default", 4, LIMIT)
    assert e.value.retry_after > 0
    assert await depth(app) == LIMIT


async def test_a_full_queue_says_so_when_no_worker_is_alive(app: Penstock) -> None:
    await fill(app)
    with pytest.raises(QueueFull, match="no worker is alive to empty it: start one, or raise") as e:
        await app.find_type("task").options(priority=6).enqueue()
    assert e.value.live_workers == 0


async def test_one_at_a_time_never_gets_past_the_limit(app: Penstock) -> None:
    for _ in range(LIMIT):
        await app.find_type("task").enqueue()
    with pytest.raises(QueueFull):
        await app.find_type("task").options(wait=False).enqueue()


async def test_many_at_the_same_moment_do_not_get_past_the_limit(app: Penstock) -> None:
    quick = app.find_type("task").options(wait=False)
    answers = await asyncio.gather(*(quick.enqueue() for _ in range(50)), return_exceptions=True)
    refused = [answer for answer in answers if isinstance(answer, QueueFull)]
    assert len(refused) == 50 - LIMIT
    assert await depth(app) == LIMIT


async def test_an_urgent_job_waits_for_room_and_then_goes_in(app: Penstock) -> None:
    await fill(app)
    waiting = asyncio.create_task(app.find_type("task").enqueue())
    done, _ = await asyncio.wait([waiting], timeout=0.1)
    assert not done
    await work_off(app)
    async with asyncio.timeout(10):
        assert (await waiting).created


async def test_waiting_ends_with_the_time_the_call_allows(app: Penstock) -> None:
    await fill(app)
    began = time.monotonic()
    with pytest.raises(QueueFull):
        await app.find_type("task").options(wait=0.1).enqueue()
    assert 0.1 <= time.monotonic() - began < 5
    with pytest.raises(QueueFull):
        await app.enqueue(app.find_type("task").new(), wait=False)
    assert time.monotonic() - began < 5


async def test_all_who_wait_go_in_one_after_the_other(app: Penstock) -> None:
    await fill(app)
    waiting = [asyncio.create_task(app.find_type("task").enqueue()) for _ in range(3 * LIMIT)]
    await asyncio.wait(waiting, timeout=0.1)
    async with asyncio.timeout(30):
        while not all(one.done() for one in waiting):
            assert await depth(app) <= LIMIT
            await work_off(app)
            await asyncio.wait(waiting, timeout=0.05)
    assert all(one.result().created for one in waiting)


async def test_a_transaction_of_the_caller_never_waits(app: Penstock) -> None:
    await fill(app)
    connection = app.connection()
    with connection, pytest.raises(QueueFull):
        await app.enqueue(app.find_type("task").new(), connection=connection)
    connection.close()


async def test_a_batch_bigger_than_the_limit_goes_in_when_the_queue_is_below_it(
    app: Penstock,
) -> None:
    await fill(app, LIMIT - 1)
    await fill(app, 3 * LIMIT)
    with pytest.raises(QueueFull):
        await app.enqueue_many([app.find_type("task").new()] * 2, wait=False)


async def test_a_refused_batch_leaves_nothing_behind(app: Penstock) -> None:
    await fill(app)
    elsewhere = app.find_type("task").options(queue="elsewhere").new()
    with pytest.raises(QueueFull):
        await app.enqueue_many([elsewhere, app.find_type("task").new()], wait=False)
    assert await app.store.jobs.depth("elsewhere", 10) == 0


async def test_jobs_for_later_and_jobs_after_others_take_no_room(app: Penstock) -> None:
    await fill(app)
    job = app.find_type("task")
    later = await job.options(delay=60, wait=False).enqueue()
    child = await job.options(after=later, wait=False).enqueue()
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    scheduled = await job.options(at=tomorrow, wait=False, priority=9).enqueue()
    assert [handle.created for handle in (later, child, scheduled)] == [True] * 3
    assert await depth(app) == LIMIT


async def test_a_running_job_enqueues_its_children_however_full_it_is(app: Penstock) -> None:
    @app.job
    async def parent(ctx: Context) -> None:
        for _ in range(3):
            await ctx.enqueue(app.find_type("task").options(priority=9).new())

    await fill(app, LIMIT - 1)
    handle = await parent.options(priority=1).enqueue()
    await Worker(app, burst=True, upkeep=False, concurrency=1).run()
    assert (await handle.get()).status == "completed"


async def test_a_full_queue_leaves_room_in_other_queues(app: Penstock) -> None:
    await fill(app)
    await app.find_type("task").options(queue="other", priority=9).enqueue()
    assert (await depth(app), await app.store.jobs.depth("other", 10)) == (LIMIT, 1)


async def test_everything_goes_in_unless_somebody_set_a_limit() -> None:
    async with Penstock("sqlite:///:memory:", settings=Settings()) as app:
        app.job(task)
        await fill(app, 10_000)
        await app.find_type("task").options(wait=False).enqueue()
        assert (await app.find_type("task").options(priority=10).enqueue()).created


async def test_an_operators_limit_overrides_the_setting(app: Penstock) -> None:
    await app.controls.set_limit(queue="default", depth=2)
    await fill(app, 2)
    with pytest.raises(QueueFull):
        await app.find_type("task").options(wait=False).enqueue()


async def test_a_changed_limit_is_heard_of(app: Penstock, monkeypatch: pytest.MonkeyPatch) -> None:
    await fill(app)
    monkeypatch.setattr(admission, "LIMITS_TRUSTED_SECONDS", 0)
    monkeypatch.setattr(admission, "LOOK_AGAIN_SECONDS", 0)
    await app.controls.set_limit(queue="*", depth=LIMIT + 1)
    await app.find_type("task").options(wait=False).enqueue()
    assert await depth(app) == LIMIT + 1
    with pytest.raises(QueueFull):
        await app.find_type("task").options(wait=False).enqueue()


async def test_depth_is_not_measured_for_every_enqueue(tmp_path: Path) -> None:
    settings = Settings(queue_limit=10_000)
    async with Penstock(f"sqlite:///{tmp_path}/work.db", settings=settings) as app:
        app.job(task)
        measured: list[str] = []
        real = app.store.jobs.depth

        async def counted(queue: str, up_to: int) -> int:
            measured.append(queue)
            return await real(queue, up_to)

        app.store.jobs.depth = counted  # type: ignore[method-assign]
        began = time.monotonic()
        for _ in range(200):
            await app.find_type("task").enqueue()
        assert len(measured) <= 1 + (time.monotonic() - began)


async def test_a_producer_with_ever_new_queues_does_not_grow(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "TRUST_SECONDS", 0)
    remembered = weakref.WeakSet[Remembered]()
    monkeypatch.setattr(
        admission, "Capacity", lambda queue: remembered.add(made := Remembered(queue)) or made
    )
    for customer in range(3 * admission.MOST_CAPACITIES // 2):
        await app.find_type("task").options(queue=f"customer-{customer}").enqueue()
    gc.collect()
    assert len(remembered) <= admission.MOST_CAPACITIES


async def test_a_hook_refuses_by_raising_and_sees_every_job(app: Penstock) -> None:
    seen: list[str] = []

    class QuotaExceeded(PenstockError):
        pass

    @app.admit
    async def quota(jobs: list[NewJob]) -> None:
        seen.extend(job.tenant_id for job in jobs)
        if "acme" in seen:
            raise QuotaExceeded("Acme has used up its quota.")

    @app.admit
    def note(jobs: list[NewJob]) -> None:
        seen.append(f"{len(jobs)} more")

    await app.find_type("task").options(tenant="small").enqueue()
    with pytest.raises(QuotaExceeded):
        await app.find_type("task").options(tenant="acme").enqueue()
    assert seen == ["small", "1 more", "acme"]
    assert await depth(app) == 1


@pytest.mark.parametrize("wait", [-1, "soon", float("nan"), 1e11])
async def test_a_wait_that_is_none_is_refused(app: Penstock, wait: float) -> None:
    with pytest.raises(InvalidOption, match=r"'wait'.*a number of seconds"):
        app.find_type("task").options(wait=wait)
    with pytest.raises(InvalidOption, match="'wait'"):
        await app.enqueue(app.find_type("task").new(), wait=wait)


async def test_a_hook_that_cannot_be_called_is_refused(app: Penstock) -> None:
    with pytest.raises(InvalidOption, match="'admit'"):
        app.admit("quota")  # type: ignore[type-var]


@pytest.mark.parametrize("limit", [0, 1_000])
async def test_the_start_of_a_job_is_estimated_from_what_waits_and_how_fast_it_goes(
    tmp_path: Path, limit: int
) -> None:
    clock = FakeClock()
    settings = Settings(queue_limit=limit)
    app = Penstock(f"sqlite:///{tmp_path}/work.db", settings=settings, clock=clock)
    async with app:
        app.job(task)
        first = await app.find_type("task").enqueue()
        assert first.estimated_start is None
        await fill(app, 119)
        await work_off(app)
        app.admission.forget()
        await fill(app, 10)
        await app.admission.rates.read()
        now = datetime.fromtimestamp(clock.now() / 1000, UTC)
        handle = await app.find_type("task").enqueue()
        assert handle.estimated_start == now + timedelta(seconds=5)
        later = await app.find_type("task").options(delay=600).enqueue()
        assert later.estimated_start == now + timedelta(seconds=600)
        child = await app.find_type("task").options(after=later).enqueue()
        assert child.estimated_start is None
        if limit:
            error = await _full(app)
            assert error.retry_after == 50


async def _full(app: Penstock) -> QueueFull:
    await fill(app, 1_000)
    with pytest.raises(QueueFull) as caught:
        await app.find_type("task").options(wait=False).enqueue()
    return caught.value


async def test_drain_rates_that_are_being_read_are_waited_for(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, may_answer = app.store.metrics.window, asyncio.Event()

    async def slow(window_ms: int) -> Any:
        await may_answer.wait()
        return await ask(window_ms)

    await fill(app, 1)
    await work_off(app)
    monkeypatch.setattr(app.store.metrics, "window", slow)
    app.admission.forget()
    app.admission.rates.look()
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(may_answer.set)
    await app.admission.rates.read()
    assert app.admission.rates.of("default") is not None
