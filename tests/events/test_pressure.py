"""Pressure: the levels, and what each of them has consumers do."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec import to_builtins
from structlog.testing import capture_logs

from penstock import Penstock
from penstock.config import Settings
from penstock.events import feed
from penstock.events.anew import MakingAnew
from penstock.events.consumer import Role, consumer_of
from penstock.events.enrichment import enrich
from penstock.events.event import NewEvent
from penstock.events.extension import PressureSettings
from penstock.events.lag import Declared, Lag, lags
from penstock.events.lag import declared as all_declared
from penstock.events.log import EventFilter
from penstock.events.pool import Pool, PoolWorker, catch_up
from penstock.events.pressure import Level, Reading, check, controls, level, next_level
from penstock.extension import Again, Extension
from penstock.model.errors import InvalidOption
from penstock.testing.clock import FakeClock
from proof.tally import Tally, folded, tally, totals
from tests.support.places import find_place

DEFAULTS = PressureSettings()
SMALL = {"green": 10, "yellow": 40, "orange": 80, "red": 160}
BY_DEPTH = SMALL | {"green_lag": 600, "yellow_lag": 700, "orange_lag": 800, "window": 20}
FIVE_SECONDS = 5_000


def seen(*depths: int, lag: float = 0, state: str = "runs") -> list[Reading]:
    """Checks of one consumer, five seconds apart, the last of them now."""
    return [
        Reading("slow", n * FIVE_SECONDS, depth, round(lag * 1000), state)
        for n, depth in enumerate(depths)
    ]


@pytest.mark.parametrize(
    ("depth", "reached"),
    [
        (9_999, Level.GREEN),
        (10_000, Level.YELLOW),
        (49_999, Level.YELLOW),
        (50_000, Level.ORANGE),
        (99_999, Level.ORANGE),
        (100_000, Level.RED),
    ],
)
def test_the_level_rises_at_once_by_depth(depth: int, reached: Level) -> None:
    assert next_level(DEFAULTS, Level.GREEN, seen(0, depth))[0] is reached


@pytest.mark.parametrize(
    ("lag", "reached"),
    [(4.9, Level.GREEN), (5, Level.YELLOW), (30, Level.ORANGE), (3_600, Level.ORANGE)],
)
def test_the_level_rises_by_lag_but_never_to_red(lag: float, reached: Level) -> None:
    assert next_level(DEFAULTS, Level.GREEN, seen(1, lag=lag))[0] is reached


@pytest.mark.parametrize(
    ("before", "depth", "after"),
    [
        (Level.RED, 50_000, Level.RED),
        (Level.RED, 49_999, Level.ORANGE),
        (Level.ORANGE, 10_000, Level.ORANGE),
        (Level.ORANGE, 9_999, Level.YELLOW),
        (Level.YELLOW, 1_000, Level.YELLOW),
        (Level.YELLOW, 999, Level.GREEN),
        (Level.RED, 0, Level.ORANGE),
    ],
)
def test_it_falls_one_level_at_a_time_below_the_figure_beneath(
    before: Level, depth: int, after: Level
) -> None:
    assert next_level(DEFAULTS, before, seen(depth, depth))[0] is after


def test_it_does_not_fall_before_the_whole_window_is_calm() -> None:
    assert next_level(DEFAULTS, Level.YELLOW, seen(1_000, 0, 0))[0] is Level.YELLOW
    assert next_level(DEFAULTS, Level.YELLOW, seen(0, lag=1))[0] is Level.YELLOW
    assert next_level(DEFAULTS, Level.YELLOW, seen(0, 0, 0))[0] is Level.GREEN


@pytest.mark.parametrize("state", ["paused", "resumes", "sheds", "gone"])
def test_only_who_runs_as_usual_raises_the_level(state: str) -> None:
    assert next_level(DEFAULTS, Level.GREEN, seen(200_000, state=state))[0] is Level.GREEN


def test_red_stays_while_who_puts_work_off_is_far_behind() -> None:
    assert next_level(DEFAULTS, Level.RED, seen(50_000, state="sheds"))[0] is Level.RED
    assert next_level(DEFAULTS, Level.RED, seen(49_999, state="sheds"))[0] is Level.ORANGE
    assert next_level(DEFAULTS, Level.RED, seen(200_000, state="paused"))[0] is Level.ORANGE


def test_the_reason_names_the_worst_consumer() -> None:
    both = [Reading("a", 1, 20_000, 0), Reading("b", 1, 30_000, 0), Reading("c", 1, 1, 40_000)]
    assert next_level(DEFAULTS, Level.GREEN, both) == (Level.ORANGE, "c is 40 s behind")
    assert next_level(DEFAULTS, Level.GREEN, both[:2]) == (
        Level.YELLOW,
        "b is 30,000 events behind",
    )


@pytest.mark.parametrize(
    "told",
    [{"green": 20_000}, {"red": 1}, {"green_lag": 0}, {"orange_lag": 2}, {"every": 0}],
)
def test_figures_that_cannot_be_are_refused(told: dict[str, float]) -> None:
    app = Penstock(
        "sqlite:///:memory:", settings=Settings(extension={"events": {"pressure": told}})
    )
    with pytest.raises(InvalidOption, match="pressure takes"):
        app.extensions.settings("events")


async def test_the_settings_say_how_often_it_is_checked(app: Penstock) -> None:
    assert await check(app) == Again(5)


# A pipeline of three consumers that the test drives turn by turn.


class Slow(Tally):
    """Says what it was given; it is enriched by something that is asked only if it may be."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.asked = 0

    async def prepare(self, events: Any) -> Any:
        await enrich("directory", self.look_up)
        return super().prepare(events)

    def look_up(self) -> str:
        self.asked += 1
        return "ada"


class Pipeline:
    """Pools whose workers move only when they are told to."""

    def __init__(self, app: Penstock, clock: FakeClock) -> None:
        self.app = app
        self.clock = clock
        self.appended = 0
        self.tallies: dict[str, Slow] = {}
        self.pools: dict[str, Pool] = {}

    def add(self, name: str, **options: Any) -> Slow:
        made = self.tallies[name] = Slow(name)
        consumer = consumer_of(made, name=name, **options)
        self.app.consumer.add(consumer)
        self.pools[name] = Pool(self.app, consumer, "here")
        return made

    async def append(self, count: int, *types: str, sessions: int = 40) -> None:
        types = types or ("tool_use", "trace", "session_start", "user_prompt")
        numbers = range(self.appended, self.appended + count)
        self.appended += count
        await self.app.events.append_many(
            [
                NewEvent(
                    event_type=types[n % len(types)], session_id=f"s{n % sessions}", platform="shop"
                )
                for n in numbers
            ]
        )

    async def fit(self) -> None:
        """Have every pool look what it is told, and its workers give and take slots."""
        for pool in self.pools.values():
            await pool.run_once()
            await asyncio.gather(
                *[task for each, task in pool._tasks.items() if each.stopping.is_set()]
            )
            for _ in range(2):
                for worker in pool.workers:
                    worker.claim_at = 0
                    await worker._fit()

    async def turn(self, name: str, turns: int = 1) -> None:
        """Let every worker of a pool apply a batch, so many times or until none has any."""
        for _ in range(turns):
            if not any([await worker.turn() for worker in self.pools[name].workers]):
                return

    async def tick(self, slow: int = 0) -> Level:
        """Let five seconds pass: others keep up, the slow one takes so many turns."""
        self.clock.advance(5)
        await self.turn("conversations", slow)
        for name in ("metrics", "insights"):
            if name in self.pools:
                await self.turn(name, 30)
        await check(self.app)
        await self.fit()
        return (await level(self.app)).level

    def workers(self) -> dict[str, int]:
        return {name: len(pool.workers) for name, pool in self.pools.items()}

    async def lag(self, name: str) -> Lag:
        return next(each for each in await lags(self.app) if each.consumer == name)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def kind() -> str:
    return "sqlite"


@pytest.fixture
async def pipeline(
    kind: str, request: pytest.FixtureRequest, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Pipeline]:
    async def stand(worker: PoolWorker) -> None:
        await worker.stopping.wait()
        await worker.leave()

    monkeypatch.setattr(PoolWorker, "run", stand)
    settings = Settings(extension={"events": {"pressure": BY_DEPTH}})
    place = find_place(kind, request)
    app = Penstock(place.url, settings=settings, extensions=[tally], clock=clock)
    async with app:
        made = Pipeline(app, clock)
        made.add("metrics", role="vital", workers=2, minimum=2, maximum=8, partitions=16, batch=5)
        made.add("conversations", workers=2, minimum=2, maximum=4, batch=5, timeout=20)
        made.add("insights", role="optional", workers=1, minimum=1, maximum=2, batch=5)
        await made.fit()
        yield made
        for pool in made.pools.values():
            await pool.stop()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
@pytest.mark.thorough("postgres")
async def test_a_slow_consumer_drives_it_to_red_and_down_again_and_nothing_is_lost(
    pipeline: Pipeline,
) -> None:
    slow, optional = pipeline.tallies["conversations"], pipeline.tallies["insights"]
    assert await pipeline.tick() is Level.GREEN
    assert pipeline.workers() == {"metrics": 2, "conversations": 2, "insights": 1}

    await pipeline.append(50)
    assert await pipeline.tick() is Level.YELLOW
    assert pipeline.workers() == {"metrics": 3, "conversations": 3, "insights": 1}
    await pipeline.append(30)
    assert await pipeline.tick(slow=1) is Level.YELLOW
    assert max(slow.prepared) == 10, "batches are twice as large"
    assert slow.asked == len(slow.prepared)

    await pipeline.append(80)
    asked = slow.asked
    assert await pipeline.tick(slow=1) is Level.ORANGE
    assert slow.asked > asked, "enrichment was still on"
    assert pipeline.workers() == {"metrics": 9, "conversations": 4, "insights": 0}
    given, asked = len(optional.prepared), slow.asked
    await pipeline.append(200)
    assert await pipeline.tick(slow=1) is Level.RED
    assert len(optional.prepared) == given, "the optional one rests"
    assert slow.asked == asked, "nobody looks anything up"

    told = await pipeline.lag("conversations")
    assert (told.sheds_from, told.timeout_ms, told.batch) == (5, 10_000, 10)
    assert (await pipeline.lag("metrics")).sheds_from is None, "it is not behind"
    await pipeline.append(100)
    assert await pipeline.tick(slow=1) is Level.RED
    assert (await pipeline.lag("conversations")).sheds_from == 4
    await pipeline.tick(slow=1)
    shown = await level(pipeline.app)
    assert (shown.level, shown.sheds) == (Level.RED, {"conversations": 4})
    assert 0 < shown.behind["conversations"] <= 40
    assert shown.reason == "conversations is 232 events behind"

    await pipeline.append(40, "user_prompt", sessions=80)
    levels = [await pipeline.tick(slow=2) for _ in range(16)]
    assert list(dict.fromkeys(levels)) == [Level.RED, Level.ORANGE, Level.YELLOW, Level.GREEN]
    assert pipeline.workers() == {"metrics": 2, "conversations": 2, "insights": 1}
    told = await pipeline.lag("conversations")
    assert (told.batch, told.timeout_ms, told.enriches, told.sheds_from) == (5, 20_000, True, None)

    for name in ("conversations", "insights", "metrics"):
        await pipeline.turn(name, 100)
        await anew(pipeline, name)
        assert await totals(pipeline.app, name) == await expected(pipeline.app), name
    assert [each.behind + each.unenriched for each in await lags(pipeline.app)] == [0, 0, 0]


async def expected(app: Penstock) -> Any:
    return folded(await app.events.find(EventFilter(limit=10_000)))


async def anew(pipeline: Pipeline, name: str) -> None:
    making = MakingAnew(pipeline.app, pipeline.pools[name].consumer)
    while await making.run_once():
        continue


async def test_the_pool_of_a_consumer_grows_and_shrinks_with_its_own_depth(
    pipeline: Pipeline,
) -> None:
    await pipeline.append(32)
    assert await pipeline.tick() is Level.GREEN, "80 % of a threshold change no level"
    assert pipeline.workers() == {"metrics": 2, "conversations": 3, "insights": 1}
    await pipeline.tick(slow=1)
    assert pipeline.workers()["conversations"] == 3, "between 20 % and 80 % nothing changes"
    for _ in range(5):
        await pipeline.tick(slow=9)
    assert pipeline.workers() == {"metrics": 2, "conversations": 2, "insights": 1}


async def test_what_gathered_while_an_optional_one_was_held_does_not_hold_it_again(
    pipeline: Pipeline,
) -> None:
    await pipeline.append(100)
    assert await pipeline.tick() is Level.ORANGE
    await pipeline.append(400)
    await pipeline.turn("metrics", 100)
    while (await pipeline.lag("insights")).held:
        pipeline.clock.advance(5)
        await pipeline.turn("conversations", 100)
        await pipeline.turn("metrics", 100)
        await check(pipeline.app)
    stands, resuming = await level(pipeline.app), await pipeline.lag("insights")
    assert (stands.level, resuming.state, resuming.depth) == (Level.YELLOW, "resumes", 400)
    await check(pipeline.app)
    assert (await level(pipeline.app)).level is not Level.ORANGE
    await pipeline.fit()
    await pipeline.turn("insights", 100)
    await check(pipeline.app)
    assert (await pipeline.lag("insights")).state == "runs"


def test_a_pool_keeps_the_workers_it_starts_with_for_a_first_window() -> None:
    starting = Declared("slow", "normal", None, 8, 3, 1, 8, 100, 30_000, 3, *[0] * 8, None)
    sizes = [
        controls(DEFAULTS, Level.GREEN, [starting], seen(*[0] * checks))[0].workers
        for checks in (1, 6, 11)
    ]
    assert sizes == [3, 3, 2]


async def test_an_operator_s_pause_stays_and_does_not_count(pipeline: Pipeline) -> None:
    told = (1, "conversations")
    await pipeline.app.transact(lambda tx: tx.events.queries.run("pause_consumer", told))
    await pipeline.append(100)
    assert await pipeline.tick(slow=3) is Level.GREEN
    assert not pipeline.tallies["conversations"].prepared
    assert (await pipeline.lag("conversations")).paused

    told = (0, "conversations")
    await pipeline.app.transact(lambda tx: tx.events.queries.run("pause_consumer", told))
    assert await pipeline.tick(slow=1) is Level.GREEN, "what has gathered is worked off"
    assert (await pipeline.lag("conversations")).state == "resumes"
    await pipeline.tick(slow=10)
    assert (await pipeline.lag("conversations")).state == "runs"


async def test_whoever_nobody_has_run_for_a_day_does_not_count(
    app: Penstock, clock: FakeClock
) -> None:
    app.consumer.add(consumer_of(lambda tx, events: None, name="old"))
    await feed.declare(app, app.consumer.get("old"))
    await app.events.append("tool_use")
    clock.advance(3_600)
    await check(app)
    assert (await level(app)).level is Level.ORANGE
    clock.advance(86_400)
    for _ in range(3):
        await check(app)
        clock.advance(5)
    assert (await level(app)).level is Level.GREEN
    await feed.declare(app, app.consumer.get("old"))
    await check(app)
    assert (await level(app)).level is Level.ORANGE


async def test_what_was_put_off_is_done_in_order_when_it_is_calm_and_its_jobs_are_enqueued_once(
    app: Penstock, clock: FakeClock
) -> None:
    applied: list[str] = []

    @app.job
    async def noop() -> None: ...

    class Noting:
        def prepare(self, events: Any) -> Any:
            applied.extend(event.session_id for event in events)
            return events

        def apply(self, tx: Any, events: Any) -> None:
            for event in events:
                tx.enqueue(noop.new(), event=event)

        def reset(self, tx: Any, session: Any) -> None: ...

    consumer = consumer_of(Noting(), name="noting")
    app.consumer.add(consumer)
    await feed.declare(app, consumer)
    await app.transact(lambda tx: tx.events.queries.run("shed", (5, "noting")))
    for session, type_ in (("c", "trace"), ("a", "trace"), ("b", "tool_use"), ("c", "tool_use")):
        await app.events.append(type_, session_id=session)
    await catch_up(app)
    assert applied == ["b"]
    making = MakingAnew(app, consumer)
    assert await making.run_once() == 0, "it still puts work off"
    await app.transact(lambda tx: tx.events.queries.run("shed", (None, "noting")))
    await keep_level(app, Level.YELLOW)
    assert await making.run_once() == 0, "it is not calm"
    await keep_level(app, Level.GREEN)
    assert await making.run_once() == 2
    assert applied == ["b", "c", "c", "a"]
    assert len(await app.find()) == 4


async def keep_level(app: Penstock, level: Level) -> None:
    await app.transact(
        lambda tx: tx.events.queries.run("keep_level", (tx.now, level.value, "told so"))
    )


async def test_an_event_that_fails_keeps_the_rest_of_its_session_from_nothing(
    app: Penstock,
) -> None:
    app.extensions.enable(tally)
    made = Tally()
    consumer = made.consumer(tries=2)
    app.consumer.add(consumer)
    await feed.declare(app, consumer)
    await app.transact(lambda tx: tx.events.queries.run("shed", (5, "tally")))
    for n in range(9):
        await app.events.append("trace", session_id="s", event_id=f"e{n}", timestamp=n)
    await catch_up(app)
    assert await totals(app) == {}
    await app.transact(lambda tx: tx.events.queries.run("shed", (None, "tally")))
    made.poison = {"e3", "e7"}
    making = MakingAnew(app, consumer)
    assert await making.run_once() == 0, "it is tried again first"
    assert await making.run_once() == 1
    events = await app.events.find()
    assert await totals(app) == folded(
        [each for each in events if each.event_id not in made.poison]
    )
    [found] = await lags(app)
    assert (found.behind, found.incomplete) == (0, 1)
    asked = {"source": "tally", "tenant": None, "before": "~", "limit": 9}
    dead = await app.read(lambda tx: tx.events.queries.rows("dead", asked))
    assert {row[3]: row[9] for row in dead} == {
        "e3": "ValueError: cannot apply e3",
        "e7": "ValueError: cannot apply e7",
    }


async def test_a_shorter_timeout_cuts_what_takes_too_long(app: Penstock) -> None:
    given: list[int] = []

    class Waiting:
        hangs = False

        async def prepare(self, events: Any) -> Any:
            if self.hangs:
                await asyncio.Event().wait()
            return events

        def apply(self, tx: Any, events: Any) -> None:
            given.append(len(events))

        def reset(self, tx: Any, session: Any) -> None: ...

    waiting = Waiting()
    app.consumer.add(consumer_of(waiting, name="waiting", timeout=60, tries=1))
    await app.events.append("tool_use")
    await catch_up(app)
    assert given == [1]
    await app.events.append("tool_use")
    [control] = controls(DEFAULTS, Level.ORANGE, [await declared(app)], [])
    assert control.timeout_ms == 30_000
    sooner = to_builtins(control) | {"timeout_ms": 50}
    await app.transact(lambda tx: tx.events.queries.run("control_consumer", sooner))
    waiting.hangs = True
    async with asyncio.timeout(30):
        await catch_up(app)
    assert given == [1]
    assert (await app.read(lambda tx: tx.events.queries.rows("count_dead"))) == [("waiting", 1)]


async def declared(app: Penstock) -> Declared:
    [found] = await app.read(lambda tx: all_declared(tx.events.queries))
    return found


async def test_in_red_everything_that_is_held_back_is_written_out(clock: FakeClock) -> None:
    flushed: list[str] = []

    async def flush(app: Penstock) -> None:
        flushed.append("here")

    async def broken(app: Penstock) -> None:
        raise ConnectionError

    settings = Settings(extension={"events": {"pressure": SMALL}})
    extension = Extension(name="shop", adds={"events.flush": (broken, flush)})
    app = Penstock("sqlite:///:memory:", settings=settings, extensions=[extension], clock=clock)
    async with app:
        await feed.declare(app, consumer_of(lambda tx, events: None, name="slow"))
        app.series.record("events.put_off", 3, consumer="slow")
        for count, expected_flushes in ((80, []), (80, ["here"]), (10, ["here"])):
            await app.events.append_many([NewEvent(event_type="x") for _ in range(count)])
            await check(app)
            clock.advance(5)
            assert flushed == expected_flushes
        assert [each.total for each in await app.series.read("events.put_off")] == [3]


@pytest.mark.parametrize(
    ("count", "said"), [(40, "warning"), (80, "error"), (160, "error"), (9, None)]
)
async def test_the_log_says_so_as_loud_as_it_matters(
    clock: FakeClock, count: int, said: str | None
) -> None:
    settings = Settings(extension={"events": {"pressure": SMALL}})
    app = Penstock("sqlite:///:memory:", settings=settings, clock=clock)
    async with app:
        await feed.declare(app, consumer_of(lambda tx, events: None, name="slow"))
        await app.events.append_many([NewEvent(event_type="x") for _ in range(count)])
        with capture_logs() as lines:
            await check(app)
    assert [line["log_level"] for line in lines if line["event"] == "pressure"] == (
        [said] if said else []
    )


def test_the_workers_of_optional_pools_are_dealt_out_to_all_vital_ones() -> None:
    def consumer(name: str, role: str, sized: int = 1) -> Declared:
        return Declared(name, role, None, 16, sized, 1, 4, 100, 30_000, sized, *[0] * 8, None)

    pools = [
        consumer("a", Role.VITAL),
        consumer("b", Role.VITAL),
        consumer("c", Role.NORMAL),
        consumer("d", Role.OPTIONAL, 3),
    ]
    told = controls(DEFAULTS, Level.ORANGE, pools, [])
    assert {each.name: each.workers for each in told} == {"a": 6, "b": 5, "c": 4, "d": 0}
    assert {each.name: each.held for each in told} == {"a": 0, "b": 0, "c": 0, "d": 1}
