"""What no store can hold, or look for, is refused by all of them in the same sentence."""

from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, date, time
from enum import Enum, IntEnum, StrEnum
from typing import Any

import pytest

from penstock import Context, Penstock, Status
from penstock.model.errors import (
    InvalidArguments,
    InvalidOption,
    PenstockError,
    UnknownType,
)
from penstock.testing import drain
from penstock.testing.clock import FakeClock

pytestmark = pytest.mark.thorough("postgres", "redis")

Call = Callable[[Any, Any], Awaitable[Any]]

STORES = {"sqlite": None, "postgres": "postgres_store_url", "redis": "valkey_url"}

ODD_LIMITS = {"negative": -1, "huge": 2**64, "bool": True, "text": "5", "none": None, "part": 1.5}
ODD_TEXTS = {"number": 5, "list": [], "bytes": b"a", "surrogate": "\udc80", "nul": "a\0b"}

LIMITED: dict[str, Call] = {
    "find": lambda app, limit: app.find(limit=limit),
    "logs": lambda app, limit: app.logs("a", limit),
    "schedules.list": lambda app, limit: app.schedules.list(limit=limit),
    "dead.groups": lambda app, limit: app.dead.groups(limit=limit),
    "dead.find": lambda app, limit: app.dead.find(group="a", limit=limit),
}

NAMED: dict[str, Call] = {
    "get": lambda app, name: app.get(name),
    "explain": lambda app, name: app.explain(name),
    "executions": lambda app, name: app.executions(name),
    "logs": lambda app, name: app.logs(name),
    "requeue": lambda app, name: app.requeue(name),
    "cancel": lambda app, name: app.cancel(name),
    "find type": lambda app, name: app.find(type=name),
    "find status": lambda app, name: app.find(status=name),
    "find tag": lambda app, name: app.find(tag=name),
    "find before": lambda app, name: app.find(before=name),
    "schedules.get": lambda app, name: app.schedules.get(name),
    "schedules.pause": lambda app, name: app.schedules.pause(name),
    "schedules.resume": lambda app, name: app.schedules.resume(name),
    "schedules.remove": lambda app, name: app.schedules.remove(name),
    "schedules.run": lambda app, name: app.schedules.run(name),
    "schedules tenant": lambda app, name: app.schedules.remove("nightly", name),
    "schedule": lambda app, name: app.schedule(name, app.find_type("keep"), every=5),
    "dead.show": lambda app, name: app.dead.show(name),
    "dead.group": lambda app, name: app.dead.group(name),
    "dead.groups": lambda app, name: app.dead.groups(name),
    "dead.find": lambda app, name: app.dead.find(group=name),
    "dead.replay": lambda app, name: app.dead.replay(name),
    "dead.canaries": lambda app, name: app.dead.canaries(name),
    "dead.release": lambda app, name: app.dead.release(name),
    "dead.amend": lambda app, name: app.dead.amend(name, {"a": 1}),
    "dead.resolve several": lambda app, name: app.dead.resolve([name]),
    "dead.resolve resolution": lambda app, name: app.dead.resolve(["a"], name),
    "pause queue": lambda app, name: app.controls.pause(queue=name),
    "pause tenant": lambda app, name: app.controls.pause(tenant=name),
    "pause job": lambda app, name: app.controls.pause(job=name),
    "resume": lambda app, name: app.controls.resume(type=name),
    "set_limit key": lambda app, name: app.controls.set_limit(key=name, concurrency=1),
    "set_limit tenant": lambda app, name: app.controls.set_limit(tenant=name, rate="1/s"),
    "set_limit rate": lambda app, name: app.controls.set_limit(key="a", rate=name),
    "remove_limit": lambda app, name: app.controls.remove_limit(key=name),
    "remove_limit kind": lambda app, name: app.controls.remove_limit(key="a", kind=name),
    "reset_breaker": lambda app, name: app.controls.reset_breaker(name),
}

REMARKS: dict[str, Call] = {
    "dead.resolve notes": lambda app, words: app.dead.resolve(["a"], notes=words),
    "dead.resolve by": lambda app, words: app.dead.resolve(["a"], by=words),
    "pause reason": lambda app, words: app.controls.pause(queue="mail", reason=words),
    "pause by": lambda app, words: app.controls.pause(queue="mail", by=words),
}

TEXT_OPTIONS = (
    "queue",
    "key",
    "tenant",
    "workspace",
    "created_by",
    "category",
    "limit_key",
    "order_key",
)


class Lane(StrEnum):
    MAIL = "mail"


class OldLane(str, Enum):  # noqa: UP042  # how it was written before Python 3.11
    MAIL = "mail"


class Urgency(IntEnum):
    HIGH = 2


COLUMNS = {
    "key": "key",
    "limit_key": "limit_key",
    "order_key": "order_key",
    "tenant": "tenant_id",
    "workspace": "workspace_id",
    "created_by": "created_by",
}

NEVER_TEXT = {"part": 1.5, "bool": True, "bytes": b"a", "list": [], "huge": 10**5000}

OTHERS: dict[str, Callable[[Any], Awaitable[Any]]] = {
    "reset_breaker": lambda app: app.controls.reset_breaker(None),
    "payload": lambda app: app.enqueue_payload("keep", []),
    "type": lambda app: app.enqueue_payload([]),
    "timeout": lambda app: _result(app, "5"),
    "endless": lambda app: _result(app, float("nan")),
    "filter": lambda app: app.find(colour="red"),
    "status": lambda app: app.find(status="odd"),
    "statuses": lambda app: app.find(status="queued", statuses=("failed",)),
}


@pytest.fixture(params=STORES)
async def app(request: pytest.FixtureRequest, clock: FakeClock) -> AsyncIterator[Penstock]:
    """An application with one job and one schedule on each kind of store."""
    fixture = STORES[request.param]
    url = "sqlite:///:memory:" if fixture is None else request.getfixturevalue(fixture)
    application = Penstock(url, clock=clock)

    @application.job
    async def keep() -> None: ...

    async with application:
        await keep.enqueue()
        await application.schedule("nightly", keep, every=5)
        yield application


@pytest.mark.quick("postgres", "redis")
async def test_an_odd_number_of_rows_is_refused(app: Penstock) -> None:
    for how, call in LIMITED.items():
        for kind, limit in ODD_LIMITS.items():
            told = await _refusal(call(app, limit), f"{how} with {kind}")
            assert told.startswith("Option 'limit' is "), (how, kind, told)
    for how in ("find", "logs", "schedules.list", "dead.groups"):
        for limit in (0, 1_000_000_000):
            await LIMITED[how](app, limit)
    assert await app.find(limit=0) == []


async def test_an_odd_name_is_refused_and_changes_nothing(app: Penstock) -> None:
    before = await _everything(app)
    for how, call in NAMED.items():
        for kind, name in ODD_TEXTS.items():
            told = await _refusal(call(app, name), f"{how} with {kind}")
            assert "must be" in told, (how, kind, told)
    assert await _everything(app) == before


async def test_a_remark_must_be_a_text_and_is_kept_as_far_as_stores_can(app: Penstock) -> None:
    for how, call in REMARKS.items():
        for kind in ("number", "list", "bytes"):
            assert "must be a text" in await _refusal(call(app, ODD_TEXTS[kind]), how)
    pause = await app.controls.pause(queue="mail", reason="a\0b\udc80", by="ann\0")
    assert (pause.reason, pause.paused_by) == ("a\ufffdb?", "ann\ufffd")
    assert await app.controls.pauses() == [pause]


async def test_an_odd_text_in_an_option_is_refused_for_jobs_and_schedules(app: Penstock) -> None:
    before = await _everything(app)
    type_ = app.find_type("keep")
    for option in TEXT_OPTIONS:
        for kind in ("nul", "surrogate"):
            odd: Any = {option: ODD_TEXTS[kind]}
            for call in (
                _enqueued(app, odd),
                app.enqueue_payload("keep", **odd),
                _scheduled(app, odd),
            ):
                told = await _refusal(call, f"{option} with {kind}")
                assert told.startswith(f"Option {option!r} is "), told
    for kind in ("list", "bytes", "surrogate", "nul"):
        words: Any = ("fine", ODD_TEXTS[kind])
        with pytest.raises(InvalidOption, match="'tags'"):
            type_.options(tags=words).new()
    assert await _everything(app) == before


async def test_a_number_is_taken_as_its_text_and_holds_up_no_other_job(app: Penstock) -> None:
    keep = app.find_type("keep")
    for option, column in COLUMNS.items():
        numbered: Any = {option: 123}
        job = await keep.options(**numbered).enqueue()
        assert getattr(await job.get(), column) == "123", option
    text: Any = {"key": "123"}
    assert not (await keep.options(**text).enqueue()).created
    await drain(app)
    assert {job.status for job in await app.find()} == {Status.COMPLETED}


async def test_what_is_neither_a_text_nor_a_number_is_refused_as_one(app: Penstock) -> None:
    for option in COLUMNS:
        for kind, value in NEVER_TEXT.items():
            odd: Any = {option: value}
            told = await _refusal(_enqueued(app, odd), f"{option} with {kind}")
            assert told.startswith(f"Option {option!r} is "), (option, kind, told)


async def test_members_of_an_enumeration_are_taken_as_what_they_stand_for(app: Penstock) -> None:
    keep = app.find_type("keep")
    for lane in (Lane.MAIL, OldLane.MAIL):
        job = await keep.options(queue=lane, tenant=lane, tags=[lane], key=lane).enqueue()
        found = await job.get()
        assert (found.queue, found.tenant_id, found.tags) == ("mail", "mail", ("mail",))
        await drain(app)
    job = await keep.options(priority=Urgency.HIGH, max_retries=Urgency.HIGH).enqueue()
    assert ((await job.get()).priority, (await job.get()).max_retries) == (2, 2)
    await drain(app)
    assert {job.status for job in await app.find()} == {Status.COMPLETED}


async def test_tags_may_be_a_list(app: Penstock) -> None:
    words: Any = ["vip", 7]
    job = await app.find_type("keep").options(tags=words).enqueue()
    assert (await job.get()).tags == ("vip", "7")
    assert [found.id for found in await app.find(tag="vip")] == [job.id]
    await drain(app)
    assert (await job.get()).status is Status.COMPLETED


async def test_metadata_is_a_mapping_that_json_can_hold(app: Penstock) -> None:
    keep = app.find_type("keep")
    numbered: Any = {1: "a\0b", "deep": {2: [None]}}
    job = await keep.options(metadata=numbered).enqueue()
    assert (await job.get()).metadata == '{"1":"a\\u0000b","deep":{"2":[null]}}'
    for odd in (["a"], "a", 5, {"a": object()}, {(1, 2): 3}, {"a": "\ud800"}):
        told = await _refusal(_enqueued(app, {"metadata": odd}), repr(odd))
        assert told.startswith("Option 'metadata' is "), told
    await drain(app)
    assert (await job.get()).status is Status.COMPLETED


async def test_a_moment_is_a_datetime_with_a_zone(app: Penstock) -> None:
    for odd in (time(3, tzinfo=UTC), date(2026, 1, 1), "2026-01-01T00:00:00Z", 5, object()):
        told = await _refusal(_enqueued(app, {"at": odd}), repr(odd))
        assert told.startswith("Option 'at' is "), told


async def test_a_very_short_timeout_is_a_millisecond_and_not_none(app: Penstock) -> None:
    job = await app.find_type("keep").options(timeout=0.0001).enqueue()
    assert (await job.get()).timeout_ms == 1


@pytest.mark.parametrize("how", OTHERS)
async def test_other_odd_values_are_one_sentence_too(app: Penstock, how: str) -> None:
    before = await _everything(app)
    with pytest.raises((InvalidOption, InvalidArguments, UnknownType), match=r"\.$"):
        await OTHERS[how](app)
    assert await _everything(app) == before


async def test_what_a_handler_says_with_a_nul_in_it_holds_up_no_other_job(app: Penstock) -> None:
    @app.job(max_retries=0)
    async def rude(ctx: Context) -> None:
        ctx.log("a\0b")
        ctx.progress(50, "a\0b")
        raise ValueError("a\0b")

    job = await rude.enqueue()
    await drain(app)
    assert (await job.get()).error == "ValueError: a\ufffdb"
    assert [line.message for line in await app.logs(job.id)] == ["a\ufffdb"]
    assert {each.status for each in await app.find(type="keep")} == {Status.COMPLETED}


async def _refusal(call: Awaitable[Any], what: str) -> str:
    try:
        await call
    except PenstockError as error:
        return str(error)
    pytest.fail(f"{what} was taken")


async def _everything(app: Penstock) -> list[Any]:
    return [
        await app.find(),
        [view.schedule for view in await app.schedules.list()],
        await app.controls.pauses(),
        await app.controls.limits(),
    ]


async def _enqueued(app: Penstock, options: Any) -> None:
    await app.find_type("keep").options(**options).enqueue()


async def _scheduled(app: Penstock, options: Any) -> None:
    await app.schedule("odd", app.find_type("keep").options(**options).new(), every=5)


async def _result(app: Penstock, timeout: Any) -> None:
    (job,) = await app.find()
    await (await app.handle(job.id)).result(timeout)
