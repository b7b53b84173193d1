from typing import Any

import pytest

from penstock import Penstock, Status
from penstock.model.controls import BreakerPosition, LimitKind, LimitScope
from penstock.model.errors import ForeignTenant, InvalidOption
from penstock.model.not_found import BreakerNotFound, JobNotFound, LimitNotFound
from penstock.operate.actor import Actor
from penstock.operate.controls import Controls, unknown_warning
from penstock.store.contract import QueueDepth
from penstock.testing import FakeClock, drain
from tests.support.places import on_any_store
from tests.support.workers import beat as a_beat
from tests.worker.running import working

pytestmark = pytest.mark.thorough("postgres", "valkey")


async def limits(app: Penstock) -> dict[tuple[str, str, str], tuple[int, int | None, bool]]:
    found = [state.limit for state in await app.controls.limits()]
    return {
        (one.scope.value, one.name, one.kind.value): (
            one.capacity,
            one.interval_ms,
            one.by_operator,
        )
        for one in found
    }


@pytest.mark.quick("postgres", "valkey")
async def test_declared_limits_are_put_into_the_store(app: Penstock) -> None:
    @app.job(concurrency=5, rate="10/s", aliases=["old_resize"])
    async def resize() -> None: ...

    app.limit(key="openai", concurrency=3, rate="60/min")
    app.limit(tenant="*", concurrency=2)
    app.limit(queue="mail", depth=500)
    assert await limits(app) == {}
    await app.declare()
    assert await limits(app) == {
        ("type", "resize", "concurrency"): (5, None, False),
        ("type", "resize", "rate"): (10, 1_000, False),
        ("type", "old_resize", "concurrency"): (5, None, False),
        ("type", "old_resize", "rate"): (10, 1_000, False),
        ("key", "openai", "concurrency"): (3, None, False),
        ("key", "openai", "rate"): (60, 60_000, False),
        ("tenant", "*", "concurrency"): (2, None, False),
        ("queue", "mail", "depth"): (500, None, False),
    }


async def test_a_deploy_leaves_what_an_operator_set(app: Penstock) -> None:
    app.limit(key="openai", concurrency=3)
    await app.declare()
    await app.controls.set_limit(key="openai", concurrency=9)
    await app.declare()
    assert await limits(app) == {("key", "openai", "concurrency"): (9, None, True)}


async def test_limits_are_dropped_by_kind_or_all_at_once(app: Penstock) -> None:
    @app.job
    async def task() -> None: ...

    await app.controls.set_limit(type=task, concurrency=3, rate="1/s")
    await app.controls.remove_limit(type=task, kind="rate")
    assert list(await limits(app)) == [("type", "task", "concurrency")]
    await app.controls.remove_limit(type="task")
    with pytest.raises(LimitNotFound, match="no limit on type 'task'"):
        await app.controls.remove_limit(type="task")


@on_any_store
@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        (
            {"key": "k", "concurrency": 0},
            "'concurrency' is 0, but it must be a whole number from 1",
        ),
        ({"key": "k", "concurrency": -1}, "'concurrency' is -1"),
        ({"key": "k", "concurrency": 1.5}, "'concurrency' is 1.5"),
        ({"key": "k", "concurrency": True}, "'concurrency' is True"),
        ({"key": "k", "rate": "fast"}, "'rate' is 'fast', but it must be a number per time"),
        ({"key": "k", "rate": "0/s"}, "'rate' is '0/s'"),
        ({"key": "k", "rate": 10}, "'rate' is 10"),
        ({"key": "k", "rate": "10/fortnight"}, "'rate'"),
        ({"key": "k", "depth": 5}, "'depth' is 5, but it must be a limit of a queue"),
        ({"queue": "q", "depth": 0}, "'depth' is 0"),
        ({"key": "k"}, "one of concurrency, rate, depth"),
        ({"concurrency": 1}, "about exactly one of: type, key, tenant, queue"),
        ({"key": "k", "queue": "q", "concurrency": 1}, "about exactly one of"),
        ({"user": "u", "concurrency": 1}, "about exactly one of"),
        ({"queue": "my queue", "concurrency": 1}, "'queue' is 'my queue'"),
        ({"type": "", "concurrency": 1}, "'type'"),
        ({"key": "", "concurrency": 1}, "'key'"),
        ({"tenant": 7, "concurrency": 1}, "'tenant' is 7"),
    ],
)
async def test_a_limit_that_makes_no_sense_is_a_sentence_at_the_call(
    app: Penstock, fields: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(InvalidOption) as declared:
        app.limit(**fields)
    assert sentence in str(declared.value)
    with pytest.raises(InvalidOption) as given:
        await app.controls.set_limit(**fields)
    assert sentence in str(given.value)


@on_any_store
@pytest.mark.parametrize(
    "registration", [{"concurrency": 0}, {"rate": "often"}, {"breaker": "a b"}]
)
async def test_a_bad_limit_of_a_type_registers_nothing(
    app: Penstock, registration: dict[str, Any]
) -> None:
    async def task() -> None: ...

    with pytest.raises(InvalidOption):
        app.job(**registration)(task)
    assert app.types == {}


async def test_the_same_limit_is_not_declared_twice_with_other_values(app: Penstock) -> None:
    app.limit(key="k", concurrency=3)
    app.limit(key="k", concurrency=3)
    with pytest.raises(InvalidOption, match="declared once for key 'k'"):
        app.limit(key="k", concurrency=4)


async def test_a_limit_kind_that_does_not_exist_is_refused(app: Penstock) -> None:
    with pytest.raises(InvalidOption, match="'kind' is 'speed'"):
        await app.controls.remove_limit(key="k", kind="speed")


async def test_breakers_guard_the_types_that_name_them(app: Penstock) -> None:
    @app.job(breaker="stripe")
    async def charge() -> None: ...

    @app.job(breaker="stripe")
    async def refund() -> None: ...

    @app.job(breaker="mailer")
    async def send() -> None: ...

    app.breaker("stripe", failures=2, cool_down=1.5)
    await app.declare()
    mailer, stripe = [state.breaker for state in await app.controls.breakers()]
    assert (stripe.types, stripe.failures, stripe.cool_down_ms) == (("charge", "refund"), 2, 1_500)
    assert (mailer.types, mailer.failures, mailer.cool_down_ms) == (("send",), 5, 30_000)


async def test_a_breaker_is_reset_by_hand(app: Penstock, clock: FakeClock) -> None:
    @app.job(breaker="stripe", retry_delay=3600)
    async def charge() -> None:
        raise ConnectionError("no answer")

    app.breaker("stripe", failures=1)
    await app.declare()
    await charge.enqueue()
    from penstock import Worker

    await Worker(app, burst=True, upkeep=False).run()
    [state] = await app.controls.breakers()
    assert state.position(clock.now()) is BreakerPosition.OPEN
    await app.controls.reset_breaker("stripe")
    [state] = await app.controls.breakers()
    assert state.position(clock.now()) is BreakerPosition.CLOSED
    with pytest.raises(BreakerNotFound, match="no breaker 'nobody'"):
        await app.controls.reset_breaker("nobody")


@on_any_store
@pytest.mark.parametrize(
    "options", [{"failures": 0}, {"failures": "many"}, {"cool_down": 0}, {"cool_down": -1}]
)
async def test_a_breaker_that_makes_no_sense_is_refused(
    app: Penstock, options: dict[str, Any]
) -> None:
    with pytest.raises(InvalidOption):
        app.breaker("stripe", **options)


async def test_a_breaker_is_described_once(app: Penstock) -> None:
    app.breaker("stripe", failures=3)
    with pytest.raises(InvalidOption, match="'breaker' is 'stripe'"):
        app.breaker("stripe", failures=4)


async def test_jobs_queues_types_and_tenants_are_paused_and_resumed(app: Penstock) -> None:
    @app.job
    async def task() -> None: ...

    handle = await task.enqueue()
    await app.controls.pause(job=handle, reason="look first", by="ada")
    assert (await handle.get()).status is Status.PAUSED
    await app.controls.pause(queue="mail")
    await app.controls.pause(type=task)
    await app.controls.pause(tenant="acme corp")
    found = {(pause.scope.value, pause.name) for pause in await app.controls.pauses()}
    assert found == {
        ("job", handle.id),
        ("queue", "mail"),
        ("type", "task"),
        ("tenant", "acme corp"),
    }
    assert await app.controls.resume(job=handle.id)
    assert (await handle.get()).status is Status.PENDING
    assert await app.controls.resume(tenant="acme corp")
    assert not await app.controls.resume(tenant="acme corp")


@on_any_store
@pytest.mark.parametrize(
    "what", [{}, {"queue": "a", "type": "b"}, {"worker": "w"}, {"queue": "*"}, {"queue": "a b"}]
)
async def test_a_pause_of_not_exactly_one_thing_is_refused(
    app: Penstock, what: dict[str, Any]
) -> None:
    with pytest.raises(InvalidOption):
        await app.controls.pause(**what)
    with pytest.raises(InvalidOption):
        await app.controls.resume(**what)


async def test_pausing_a_job_that_does_not_exist_is_an_error(app: Penstock) -> None:
    with pytest.raises(JobNotFound):
        await app.controls.pause(job="01JD0000000000000000000000")


async def test_limits_say_what_they_are(app: Penstock) -> None:
    await app.controls.set_limit(queue="mail", concurrency=2)
    [state] = await app.controls.limits()
    assert (state.limit.scope, state.limit.kind) == (LimitScope.QUEUE, LimitKind.CONCURRENCY)


async def test_every_queue_is_listed_also_while_it_is_empty(app: Penstock) -> None:
    @app.job(queue="images")
    async def resize() -> None: ...

    app.store.workers.beat(a_beat(owner="a", queues=None, declared_queues=("images", "mail")))
    app.store.workers.beat(a_beat(owner="b", queues=("mail", "extra"), declared_queues=()))
    await app.controls.pause(queue="held")
    await app.controls.set_limit(queue="bounded", depth=5)
    await app.controls.set_limit(queue="*", depth=500)
    await resize.enqueue()
    found = {state.depth.queue: state for state in await app.controls.queues()}
    assert list(found) == ["bounded", "extra", "held", "images", "mail"]
    assert (found["images"].depth.queued, found["images"].workers) == (1, 1)
    assert (found["mail"].depth.jobs, found["mail"].workers) == (0, 2)
    assert found["held"].pause is not None
    assert [state.limit.capacity for state in found["bounded"].limits] == [5]


async def test_the_queues_of_a_worker_that_is_gone_are_not_listed(
    app: Penstock, clock: FakeClock
) -> None:
    app.store.workers.beat(a_beat(declared_queues=("images",)))
    clock.advance(seconds=60)
    assert await app.controls.queues() == []


async def test_a_queue_whose_jobs_have_all_ended_is_listed_for_a_day(
    app: Penstock, clock: FakeClock
) -> None:
    @app.job(queue="images")
    async def resize() -> None: ...

    await resize.enqueue()
    await drain(app)
    assert [state.depth for state in await app.controls.queues()] == [QueueDepth(queue="images")]
    clock.advance(seconds=3 * 86_400)
    assert await app.controls.queues() == []


async def test_of_one_tenant_only_the_queues_with_its_jobs_are_listed(app: Penstock) -> None:
    @app.job(queue="images")
    async def resize() -> None: ...

    await app.controls.pause(queue="held")
    await resize.options(tenant="acme").enqueue()
    await resize.options(tenant="other", queue="else").enqueue()
    states = await app.controls.queues("acme")
    assert [state.depth.queue for state in states] == ["images"]
    with pytest.raises(ForeignTenant):
        await Controls(app, Actor("ann", "acme")).queues("other")


async def test_what_nobody_knows_is_warned_about_before_it_is_paused(
    app: Penstock, clock: FakeClock
) -> None:
    @app.job(queue="images")
    async def resize() -> None: ...

    app.store.workers.beat(a_beat(types=("scan",), declared_queues=("paper",)))
    await resize.enqueue()
    for known in ({"queue": "images"}, {"queue": "paper"}, {"type": resize}, {"type": "scan"}):
        assert await unknown_warning(app, **known) is None
    assert await unknown_warning(app, tenant="anybody") is None
    assert await unknown_warning(app, queue="image") == (
        "No job and no live worker uses the queue 'image'; did you mean 'images'?"
    )
    assert (
        await unknown_warning(app, type="print")
        == "No job and no live worker uses the type 'print'."
    )

    await drain(app)
    clock.advance(seconds=3 * 86_400)
    assert await unknown_warning(app, queue="images") is None  # its jobs are still kept


async def test_a_worker_declares_the_queues_of_its_types(app: Penstock) -> None:
    @app.job(queue="images")
    async def resize() -> None: ...

    @app.job
    async def other() -> None: ...

    async with working(app):
        states = await app.controls.queues()
    assert [(state.depth.queue, state.workers) for state in states] == [
        ("default", 1),
        ("images", 1),
    ]
