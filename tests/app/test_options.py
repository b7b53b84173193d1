from datetime import UTC, datetime, timedelta, timezone
from types import NoneType
from typing import Any, get_args, get_type_hints

import msgspec
import pytest

from penstock import Penstock, Status
from penstock.app.options import AwaitingFields, CallFields, OptionFields
from penstock.model.errors import InvalidOption
from penstock.model.job import OPTIONS, KeyScope
from penstock.model.options import FOREVER_MS
from penstock.testing import FakeClock
from tests.support.options import KEPT, SAMPLES, columns
from tests.support.places import on_any_store

pytestmark = pytest.mark.thorough("postgres", "valkey")


@pytest.mark.quick("postgres", "valkey")
async def test_the_options_of_a_type_become_the_jobs_columns(app: Penstock) -> None:
    @app.job(queue="mail", priority=3, max_retries=5, timeout=30, retry_delay=2, backoff=3)
    async def send() -> None: ...

    job = await (await send.enqueue()).get()
    assert (job.queue, job.priority, job.max_retries, job.timeout_ms) == ("mail", 3, 5, 30_000)
    assert (job.retry_delay_ms, job.backoff_multiplier) == (2000, 3)


async def test_one_enqueue_overrides_what_the_type_says(app: Penstock) -> None:
    @app.job(queue="mail", priority=3, tags=("a",))
    async def send() -> None: ...

    changed = send.options(
        priority=1,
        tags=("welcome", "b"),
        tenant="t1",
        workspace="w1",
        created_by="ada",
        category="bulk",
        metadata={"source": "form"},
    )
    job = await (await changed.enqueue()).get()
    assert (job.queue, job.priority, job.tags) == ("mail", 1, ("welcome", "b"))
    assert (job.tenant_id, job.workspace_id, job.created_by) == ("t1", "w1", "ada")
    assert (job.category, job.metadata) == ("bulk", '{"source":"form"}')
    assert (await (await send.enqueue()).get()).priority == 3


async def test_a_delayed_job_runs_when_its_time_has_come(
    app: Penstock, clock: FakeClock, drain: Any
) -> None:
    @app.job
    async def later() -> str:
        return "ran"

    job = await later.options(delay=60).enqueue()
    assert (await drain()).completed == 0
    assert (await job.get()).status is Status.PENDING
    clock.advance(60)
    assert (await drain()).completed == 1


async def test_a_job_for_a_moment_waits_for_it(app: Penstock, clock: FakeClock, drain: Any) -> None:
    @app.job
    async def report() -> None: ...

    moment = datetime.fromtimestamp(clock.now() / 1000, UTC) + timedelta(hours=2)
    job = await report.options(at=moment).enqueue()
    assert (await job.get()).scheduled_at == int(moment.timestamp() * 1000)
    clock.advance(7199)
    assert (await drain()).completed == 0
    clock.advance(1)
    assert (await drain()).completed == 1


async def test_an_expired_job_is_a_dead_letter(app: Penstock, clock: FakeClock, drain: Any) -> None:
    @app.job
    async def stale() -> None: ...

    job = await stale.options(expires_in=10).enqueue()
    clock.advance(11)
    assert await drain() == (0, 0)
    assert (await job.get()).status is Status.DEAD_LETTER


async def test_the_most_urgent_job_runs_first(app: Penstock, drain: Any) -> None:
    ran: list[int] = []

    @app.job
    async def note(priority: int) -> None:
        ran.append(priority)

    app.settings = app.settings.replace(concurrency=1)
    await app.enqueue_many([note.options(priority=p).new(p) for p in (5, 10, 1, 7)])
    await drain()
    assert ran == [1, 5, 7, 10]


async def test_a_key_finds_the_job_that_has_it(app: Penstock, drain: Any) -> None:
    @app.job
    async def welcome(to: str) -> None: ...

    first = await welcome.options(key="welcome-1").enqueue("a")
    second = await welcome.options(key="welcome-1").enqueue("b")
    assert (first.created, second.created, second.id) == (True, False, first.id)
    await drain()
    assert (await welcome.options(key="welcome-1").enqueue("c")).created


async def test_a_key_of_a_window_keeps_others_out_until_it_closes(
    app: Penstock, clock: FakeClock, drain: Any
) -> None:
    @app.job
    async def digest() -> None: ...

    daily = digest.options(key="d", key_window=3600)
    assert (await daily.enqueue()).created
    await drain()
    assert not (await daily.enqueue()).created
    clock.advance(3601)
    assert (await daily.enqueue()).created


@on_any_store
@pytest.mark.parametrize(
    ("option", "value", "word"),
    [
        ("priority", 0, "1 to 10"),
        ("priority", 11, "1 to 10"),
        ("priority", 2.5, "whole number"),
        ("priority", True, "whole number"),
        ("max_retries", -1, "0 to 1000"),
        ("timeout", 0, "above 0"),
        ("timeout", 3601, "max_timeout"),
        ("delay", -1, "0 or more"),
        ("delay", "soon", "number of seconds"),
        ("delay", None, "number of seconds"),
        ("expires_in", -5, "0 or more"),
        ("backoff", 0.5, "1 to 10"),
        ("backoff", "2", "1 to 10"),
        ("key", "", "1 to 255"),
        ("key", "k" * 256, "1 to 255"),
        ("key", b"k", "1 to 255"),
        ("key_scope", "sometimes", "until_done"),
        ("key_scope", [], "until_done"),
        ("tenant", None, "empty for none"),
        ("tenant", 5.5, "1 to 255"),
        ("workspace", b"w", "1 to 255"),
        ("created_by", [], "1 to 255"),
        ("key_scope", "window", "seconds"),
        ("at", datetime(2026, 1, 1), "zone"),  # noqa: DTZ001
        ("queue", "no spaces", "letters"),
        ("tags", tuple("t" for _ in range(33)), "32"),
        ("tags", (1.5,), "words"),
        ("tags", "vip", "words"),
        ("tags", {"vip"}, "words"),
        ("qeue", "red", "There is no option .qeue.; did you mean .queue."),
    ],
)
def test_an_option_out_of_range_is_refused_with_what_it_must_be(
    app: Penstock, option: str, value: Any, word: str
) -> None:
    @app.job
    async def task() -> None: ...

    with pytest.raises(InvalidOption, match=word) as refused:
        task.options(**{option: value})
    assert option.removesuffix("_scope") in str(refused.value)


@on_any_store
@pytest.mark.parametrize("option", ["run_in", "concurrency", "name"])
def test_an_option_of_the_type_is_refused_for_a_call_with_where_it_belongs(
    app: Penstock, option: str
) -> None:
    @app.job
    async def task() -> None: ...

    belongs = rf"'{option}' must be given to the job type: @app\.job\({option}=…\)"
    value: Any = "process"
    with pytest.raises(InvalidOption, match=belongs):
        task.options(**{option: value})


def test_a_setting_raises_the_longest_timeout(app: Penstock) -> None:
    app.settings = app.settings.replace(max_timeout=10_000)

    @app.job(timeout=9_000)
    async def long() -> None: ...

    assert long.defaults.timeout_ms == 9_000_000


@on_any_store
@pytest.mark.parametrize(
    ("option", "value", "expected"),
    [
        ("at", datetime.max.replace(tzinfo=timezone(timedelta(hours=-12))), "the years 1 to 9999"),
        ("at", datetime.min.replace(tzinfo=timezone(timedelta(hours=14))), "the years 1 to 9999"),
        ("tags", ("x" * 256,), "at most 255 characters"),
        ("metadata", {"note": "x" * 70_000}, "65,536 bytes"),
    ],
)
async def test_what_would_be_in_the_way_of_other_jobs_is_refused(
    app: Penstock, option: str, value: Any, expected: str
) -> None:
    @app.job
    async def send() -> None: ...

    with pytest.raises(InvalidOption, match=expected):
        send.options(**{option: value})


def test_editors_know_every_option_and_which_may_be_none() -> None:
    hints = get_type_hints(OptionFields)
    assert CallFields.__annotations__.keys() == AwaitingFields.__annotations__.keys()
    assert CallFields.__annotations__.keys() == hints.keys() | {"after"} == OPTIONS.keys()
    optional = {name for name, kind in hints.items() if NoneType in get_args(kind)}
    assert optional == {each.name for each in OPTIONS.values() if each.optional}


async def test_every_option_is_kept_with_its_job(app: Penstock) -> None:
    @app.job
    async def send() -> None: ...

    call = send.options(**KEPT).new()  # type: ignore[typeddict-item]  # known by the samples
    job = await (await app.enqueue(call)).get()
    assert columns(job, KEPT) == columns(call.job, KEPT)
    assert [name for name in KEPT if columns(job, KEPT)[name] == OPTIONS[name].default] == []


@pytest.mark.parametrize("name", sorted(SAMPLES))
def test_what_a_job_holds_is_written_as_it_was_said(name: str) -> None:
    option = OPTIONS[name]
    stored = option.stored(SAMPLES[name])
    again = option.written(stored)
    read = msgspec.json.decode(msgspec.json.encode(again), type=option.kind)
    assert option.stored(read) == stored


def test_a_window_that_is_taken_back_leaves_the_usual_scope(app: Penstock) -> None:
    @app.job(key_window=60)
    async def digest() -> None: ...

    assert digest.new().job.key_scope is KeyScope.WINDOW
    assert digest.options(key="k", key_window=None).new().job.key_scope is None


async def test_a_call_has_the_key_scope_of_its_type(app: Penstock, drain: Any) -> None:
    @app.job(key_scope="forever")
    async def once() -> None: ...

    assert (await once.options(key="k").enqueue()).created
    await drain()
    assert not (await once.options(key="k").enqueue()).created


@pytest.mark.parametrize(
    ("said", "held", "written"),
    [
        (True, 0, True),
        (False, FOREVER_MS, False),
        (100, -100, 100),
        (0, 0, True),
        ("7d", 7 * 86_400_000, "604800s"),
        ("90 s", 90_000, "90s"),
        ("1.5h", 5_400_000, "5400s"),
        (timedelta(minutes=1), 60_000, "60s"),
        ("true", 0, True),
        ("FALSE", FOREVER_MS, False),
        ("25", -25, 25),
    ],
)
async def test_a_job_holds_how_long_it_is_kept(
    app: Penstock, said: Any, held: int, written: Any
) -> None:
    @app.job(remove_on_complete=said)
    async def task() -> None: ...

    job = await (await task.options(remove_on_fail=said).enqueue()).get()
    assert (job.keep_completed, job.keep_failed) == (held, held)
    option = OPTIONS["remove_on_complete"]
    assert option.written(held) == written
    assert option.stored(option.written(held)) == held


@on_any_store
@pytest.mark.parametrize("said", [-1, 1.5, "soon", "7x", [], 2_000_000, "999999999999d"])
async def test_what_says_not_how_long_a_job_is_kept_is_refused(app: Penstock, said: Any) -> None:
    with pytest.raises(InvalidOption, match="remove_on_fail"):
        app.job(remove_on_fail=said)(_nothing)


async def _nothing() -> None: ...
