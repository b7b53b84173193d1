"""Pressure: how far behind the consumers are as a level, and what is done about it by their roles.

Green is calm. From yellow on the vital pool gets a worker and batches are larger; from orange on
optional pools rest, their workers help the vital one, all others have as many as they may, timeouts
are shorter and enrichment that is not critical is off; in red work of low priority is put off.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

import structlog
from msgspec import Struct

from penstock.events.consumer import Role
from penstock.events.lag import Declared, Lag, declared, lags
from penstock.extension import Again, load
from penstock.model.wording import counted, span

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.events.extension import PressureSettings
    from penstock.extension import Queries

log = structlog.get_logger("penstock.events")

GROWS, SHRINKS = 0.8, 0.2
"""Parts of the yellow figure: a pool gets a worker from the one on, loses one below the other."""
LARGER, SHORTER = 2, 0.5
SHED = (5, 4)
"""Priorities that are put off in red: the first, and, if that was not enough, the second, too."""
NOT_SEEN: Mapping[str, int] = {}
KEEP_MS = 3_600_000
KEEP_LEVELS_MS = 30 * 86_400_000


class Level(StrEnum):
    """How hard it is, the worst last."""

    GREEN = "green"
    YELLOW = "yellow"
    ORANGE = "orange"
    RED = "red"

    @property
    def rank(self) -> int:
        """0 is calm, 3 the worst."""
        return _LEVELS.index(self)


_LEVELS = tuple(Level)


class Reading(Struct, frozen=True):
    """How far behind a consumer was at a check; only who runs as usual counts."""

    consumer: str
    at: int
    depth: int
    lag_ms: int
    state: str = "runs"


class LevelChange(Struct, frozen=True):
    """A level that was reached, when and why."""

    at: int
    level: Level
    reason: str


class Pressure(Struct, frozen=True, kw_only=True):
    """The level that stands, why and since when, and what the last check saw.

    `depth` and `lag_ms` are those of the worst consumer that is neither paused nor putting work
    off. `sheds` names the consumers that put work off now, and from which priority on; `behind`
    how many sessions of a consumer are to be made anew.
    """

    level: Level
    reason: str
    since_at: int | None
    checked_at: int | None
    consumer: str | None
    depth: int
    lag_ms: int
    sheds: dict[str, int]
    behind: dict[str, int]
    history: list[LevelChange]


class Told(Struct, frozen=True, kw_only=True):
    """What a consumer is told to do."""

    name: str
    sized: int
    workers: int
    batch: int
    timeout_ms: int
    held: int
    run_at: int
    resumes: int
    enriches: int
    sheds_from: int | None


async def level(app: "Penstock") -> Pressure:
    """The level that stands, and what was seen when it was last checked."""

    def question(tx: Any) -> Pressure:
        queries = tx.events.queries
        history = _history(queries)
        checked_at = queries.value("last_check")
        seen = [] if checked_at is None else _readings(queries, int(checked_at) - 1)
        worst = worst_of(seen)
        marked = queries.rows("count_marked")
        sheds = {each.name: each.sheds_from for each in declared(queries)}
        return Pressure(
            level=history[0].level if history else Level.GREEN,
            reason=history[0].reason if history else "nothing was checked yet",
            since_at=history[0].at if history else None,
            checked_at=checked_at,
            consumer=worst.consumer if worst and worst.depth else None,
            depth=worst.depth if worst else 0,
            lag_ms=max((each.lag_ms for each in seen if each.state == "runs"), default=0),
            sheds={name: number for name, number in sheds.items() if number is not None},
            behind={name: int(count) for name, mark, count in marked if mark == "behind"},
            history=history,
        )

    return await app.read(question)


async def check(app: "Penstock") -> Again:
    """Measure how far behind everybody is, and tell consumers what to do; the leader's pass."""
    figures: PressureSettings = app.extensions.settings("events").pressure
    found = await lags(app)
    before, now = await app.transact(lambda tx: _decide(tx, figures, found))
    if now.level is not before:
        await _tell(app, before, now)
    return Again(figures.every)


def _decide(
    tx: Any, figures: "PressureSettings", found: Sequence[Lag]
) -> tuple[Level, LevelChange]:
    queries, now = tx.events.queries, tx.now
    seen = [Reading(each.consumer, now, each.depth, each.lag_ms, each.state) for each in found]
    for reading in seen:
        kept = (reading.consumer, now, reading.depth, reading.lag_ms, reading.state)
        queries.run("keep_reading", kept)
    queries.run("forget_readings", (now - KEEP_MS,))
    window = _readings(queries, now - round(figures.window * 1000))
    history = _history(queries)
    before = history[0].level if history else Level.GREEN
    after, reason = next_level(figures, before, window)
    if after is not before or not history:
        queries.run("keep_level", (now, after.value, reason))
        queries.run("forget_levels", (now - KEEP_LEVELS_MS,))
    run_at = {each.consumer: now for each in found if each.workers}
    for told in controls(figures, after, declared(queries), window, run_at):
        queries.run("control_consumer", {name: getattr(told, name) for name in _TOLD})
    return before, LevelChange(now, after, reason)


_TOLD = Told.__struct_fields__


def next_level(
    figures: "PressureSettings", before: Level, window: Sequence[Reading]
) -> tuple[Level, str]:
    """The level after a check, and why; the last readings of the window are those of the check.

    It rises at once, as far as it has to, by the worst consumer that is neither paused nor putting
    work off. It falls by one level when for the whole window everybody who runs was below the
    figure of the level beneath; in red, also those who put work off, who would else stop too soon.
    """
    last_at = max((each.at for each in window), default=0)
    current = [each for each in window if each.at == last_at]
    worst = worst_of(current)
    reached, reason = _reached(figures, worst, _slowest(current))
    if reached.rank > before.rank:
        return reached, reason
    if before is Level.GREEN:
        return before, reason
    beneath = _LEVELS[before.rank - 1]
    running = [each for each in window if each.state in ("runs", "sheds")]
    depth = max((each.depth for each in running), default=0)
    lag_ms = max((each.lag_ms for each in running if each.state == "runs"), default=0)
    slow = before is not Level.RED and lag_ms >= figures.lag_ms(beneath)
    if depth >= figures.depth(beneath) or slow:
        return before, reason
    figure = counted(figures.depth(beneath), "event")
    return beneath, f"no consumer was {figure} behind for {span(figures.window * 1000)}"


def _reached(
    figures: "PressureSettings", worst: Reading | None, slowest: Reading | None
) -> tuple[Level, str]:
    """The level that these figures alone stand for."""
    if worst is None or slowest is None:
        return Level.GREEN, "no consumer runs"
    if not worst.depth and not slowest.lag_ms:
        return Level.GREEN, "nobody is behind"
    by_depth = [each for each in _LEVELS[1:] if worst.depth >= figures.depth(each)]
    by_lag = [each for each in _LEVELS[1:3] if slowest.lag_ms >= figures.lag_ms(each)]
    reached = max((*by_depth, *by_lag, Level.GREEN), key=lambda each: each.rank)
    if by_depth and by_depth[-1] is reached:
        return reached, f"{worst.consumer} is {counted(worst.depth, 'event')} behind"
    return reached, f"{slowest.consumer} is {span(slowest.lag_ms)} behind"


def controls(
    figures: "PressureSettings",
    level: Level,
    consumers: Sequence[Declared],
    window: Sequence[Reading],
    run_at: Mapping[str, int] = NOT_SEEN,
) -> list[Told]:
    """What every consumer is told to do at a level, by its role and by how far behind it is.

    `run_at` tells when workers of some were seen.
    """
    sized = {each.name: _sized(figures, each, window) for each in consumers}
    high = level.rank >= Level.ORANGE.rank
    resting = [each for each in consumers if high and each.role == Role.OPTIONAL]
    vital = [each for each in consumers if each.role == Role.VITAL]
    moved = _dealt([each.name for each in vital], sum(sized[each.name] for each in resting))
    return [
        Told(
            name=each.name,
            sized=sized[each.name],
            workers=_workers(level, each, sized[each.name], moved),
            batch=each.own_batch * (LARGER if level is not Level.GREEN else 1),
            timeout_ms=round(each.own_timeout_ms * (SHORTER if high else 1)),
            held=int(each in resting),
            run_at=run_at.get(each.name, each.run_at),
            resumes=int(each not in resting and _resumes(figures, each, window)),
            enriches=int(not high),
            sheds_from=_sheds_from(figures, level, each, window),
        )
        for each in consumers
    ]


def _sized(figures: "PressureSettings", consumer: Declared, window: Sequence[Reading]) -> int:
    """How many workers its own depth and lag ask for: one more, or one less, at a time."""
    seen = [each for each in window if each.consumer == consumer.name]
    if not seen or seen[-1].state in ("paused", "gone"):
        return consumer.sized
    shares = [
        max(each.depth / figures.depth(Level.YELLOW), each.lag_ms / figures.lag_ms(Level.YELLOW))
        for each in seen
    ]
    # One that was declared a moment ago keeps the workers it starts with.
    whole = seen[-1].at - seen[0].at >= 1000 * (figures.window - 2 * figures.every)
    step = 1 if shares[-1] >= GROWS else -1 if whole and max(shares) < SHRINKS else 0
    return max(consumer.minimum, min(consumer.sized + step, consumer.maximum))


def _resumes(figures: "PressureSettings", consumer: Declared, window: Sequence[Reading]) -> bool:
    """Whether it was held and has not caught up: its backlog alone would have it held again."""
    seen = [each.depth for each in window if each.consumer == consumer.name]
    return bool(consumer.held or (consumer.resumes and seen and seen[-1] >= figures.green))


def _workers(level: Level, consumer: Declared, sized: int, moved: Mapping[str, int]) -> int:
    if level.rank < Level.ORANGE.rank:
        more = level is Level.YELLOW and consumer.role == Role.VITAL
        return min(sized + more, consumer.maximum)
    if consumer.role == Role.OPTIONAL:
        return 0
    # No more than one worker can have a partition.
    return min(consumer.maximum + moved.get(consumer.name, 0), consumer.partitions)


def _dealt(names: Sequence[str], count: int) -> dict[str, int]:
    """So many workers, dealt out in turn."""
    return {name: len(range(n, count, len(names))) for n, name in enumerate(names)}


def _sheds_from(
    figures: "PressureSettings", level: Level, consumer: Declared, window: Sequence[Reading]
) -> int | None:
    """In red, whoever is far behind puts work off, and more of it if that was not enough."""
    seen = [each for each in window if each.consumer == consumer.name]
    counts = bool(seen) and seen[-1].state in ("runs", "sheds")
    if level is not Level.RED or not counts or consumer.role == Role.OPTIONAL:
        return None
    depth = seen[-1].depth
    if consumer.sheds_from is None:
        return SHED[0] if depth >= figures.depth(Level.ORANGE) else None
    return SHED[1] if depth >= figures.depth(Level.RED) else consumer.sheds_from


def worst_of(seen: Sequence[Reading]) -> Reading | None:
    """Whoever is most events behind, of those that are neither paused nor put work off."""
    counts = [each for each in seen if each.state == "runs"]
    return max(counts, key=lambda each: each.depth, default=None)


def _slowest(seen: Sequence[Reading]) -> Reading | None:
    counts = [each for each in seen if each.state == "runs"]
    return max(counts, key=lambda each: each.lag_ms, default=None)


async def _tell(app: "Penstock", before: Level, now: LevelChange) -> None:
    """Say that the level has changed; in red, whatever holds something back writes it out."""
    rises = now.level.rank > before.rank
    calm = not rises or now.level is Level.GREEN
    say = log.info if calm else log.warning if now.level is Level.YELLOW else log.error
    say("pressure", now=now.level.value, before=before.value, reason=now.reason)
    if rises and now.level is Level.RED:
        await flush(app)


async def flush(app: "Penstock") -> None:
    """Have everything written out that is held back in memory, here and in extensions."""
    for extension in app.extensions:
        for each in extension.adds.get("events.flush", ()):
            try:
                await load(each)(app)
            except Exception as error:
                log.warning("not_flushed", part=str(each), error=str(error))


def _readings(queries: "Queries", after: int) -> list[Reading]:
    return [Reading(*row) for row in queries.rows("readings_since", (after,))]


def _history(queries: "Queries", limit: int = 20) -> list[LevelChange]:
    """The levels there were, the latest first."""
    rows = queries.rows("levels", (limit,))
    return [LevelChange(at, Level(name), reason) for at, name, reason in rows]
