"""The pipeline as people see and steer it: what comes in, and how far each consumer has come."""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from penstock.events.consumer import CannotRebuild, Consumer, Consumers, UnknownConsumer
from penstock.events.event import Session
from penstock.events.lag import Lag, measured
from penstock.events.pressure import Pressure, level
from penstock.events.rebuild import rebuild
from penstock.model.errors import InvalidOption
from penstock.model.ids import new_id
from penstock.operate.actor import PROGRAM, Actor

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

RATE_MS = 60_000
LOOKED_AT = 2_000
"""So many of the last events say how many come in a second."""
SAMPLES = 30
LATELY_MS = 60_000
FORGET = (
    *(
        "forget_jobs_of",
        "forget_cursors_of",
        "forget_members_of",
        "forget_marks_of",
        "forget_letters_of",
    ),
    *("forget_readings_of", "forget_series_of", "forget_samples_of", "forget_consumer"),
)

COUNTED_TO = 10_000
"""More sessions than these are not counted before they are rebuilt."""

Show = Callable[[int, int | None], None]
"""Hears how many sessions were rebuilt, and of about how many, if that is known."""


class ConsumerState(Struct, frozen=True, kw_only=True):
    """A consumer: what it does now, how far behind it is, and what it could not do.

    `per_second` is how many events it passed since the last looks, None at the first. `held` is a
    pause that the pressure made; events from `sheds_from` on are put off. `sessions` counts those
    that are not as the log says.
    """

    name: str
    role: str
    state: str
    depth: int
    lag_ms: int
    per_second: float | None
    paused: bool
    held: bool
    workers: int
    wanted_workers: int
    batch: int
    timeout_ms: int
    enriches: bool
    sheds_from: int | None
    dead: int
    sessions: dict[str, int]


class PipelineState(Struct, frozen=True, kw_only=True):
    """All of it at one moment; `dead` counts dead letters by who gave them up."""

    at: int
    latest: int
    per_second: float
    pressure: Pressure
    consumers: list[ConsumerState]
    dead: dict[str, int]


class Pipeline:
    """`app.events.pipeline`: look at it, pause and resume consumers, rebuild what they derived."""

    def __init__(self, app: "Penstock", actor: Actor = PROGRAM) -> None:
        self._app = app
        self._actor = actor

    async def state(self) -> PipelineState:
        """How it stands."""
        app, now = self._app, self._app.store.clock.now()
        seen: _Seen = await app.read(lambda tx: _look(tx, now))
        rates = app.events.rates.seen(now, seen.positions)
        return PipelineState(
            at=now,
            latest=seen.latest,
            per_second=seen.per_second(now),
            pressure=await level(app),
            consumers=[_state(lag, seen, rates.get(lag.consumer)) for lag in seen.lags],
            dead=seen.dead,
        )

    async def consumer(self, name: str) -> ConsumerState:
        """One consumer that the store knows."""
        return _named(name, (await self.state()).consumers)

    async def pause(self, name: str) -> ConsumerState:
        """Have a consumer stop after its batches; what comes waits for it, and nothing is lost."""
        return await self._set_paused(name, paused=True)

    async def resume(self, name: str) -> ConsumerState:
        """Let a consumer go on where it stopped."""
        return await self._set_paused(name, paused=False)

    async def rebuild(
        self,
        name: str,
        session: Session | None = None,
        *,
        enqueue: bool = False,
        show: Show | None = None,
    ) -> int:
        """Derive anew what a consumer made of a session, or of all; how many sessions.

        Jobs are enqueued only if told to, and then those alone that never were for their events.
        """
        consumer = self.rebuildable(name)
        total = 1 if session is not None else await self._count_sessions()
        done = 0

        def rebuilt(_: Session, __: int) -> None:
            nonlocal done
            done += 1
            if show is not None:
                show(done, None if total is None else max(total, done))

        subject = "all" if session is None else session.session_id
        async with self._actor.doing("consumer.rebuild", f"consumer:{name}", session=subject):
            return await rebuild(self._app, consumer, session, enqueue=enqueue, show=rebuilt)

    def rebuildable(self, name: str) -> Consumer:
        """A consumer that is declared here and can be rebuilt."""
        consumers: Consumers = self._app.consumer
        consumer = consumers.get(name)
        if consumer.reset is None:
            raise CannotRebuild(name)
        return consumer

    async def forget(self, name: str) -> None:
        """Forget a consumer that is gone: where it was, what it gave up, its figures.

        One that is declared here, or of which workers were seen lately, is refused. What it derived
        in tables of its own stays.
        """
        await self.consumer(name)
        consumers: Consumers = self._app.consumer
        if name in consumers.known():
            raise InvalidOption("consumer", name, "one that is not declared here any more")
        async with self._actor.doing("consumer.forget", f"consumer:{name}"):
            await self._app.transact(lambda tx: _forget(tx, name))

    async def _set_paused(self, name: str, *, paused: bool) -> ConsumerState:
        await self.consumer(name)
        action = "pause" if paused else "resume"
        async with self._actor.doing(f"consumer.{action}", f"consumer:{name}"):
            asked = (int(paused), name)
            await self._app.transact(lambda tx: tx.events.queries.run("pause_consumer", asked))
        return await self.consumer(name)

    async def _count_sessions(self) -> int | None:
        """About how many sessions the log has; None if they are too many to count."""
        asked = {"most": COUNTED_TO}
        count = int(
            await self._app.read(lambda tx: tx.events.queries.value("count_sessions", asked))
        )
        return None if count >= COUNTED_TO else count


def _forget(tx: Any, name: str) -> None:
    queries = tx.events.queries
    members = queries.rows("members", (name, tx.now - LATELY_MS, tx.now + LATELY_MS))
    if members:
        expected = f"one that nothing runs; {members[0][0]} did within the last minute"
        raise InvalidOption("consumer", name, expected)
    queries.run("keep_jobs", (f"forgotten {new_id()}", name))
    for query in FORGET:
        queries.run(query, (name,))


class Rates:
    """What consumers got done between two looks at them."""

    def __init__(self) -> None:
        self._samples: deque[tuple[int, dict[str, float]]] = deque(maxlen=SAMPLES)

    def seen(self, now: int, positions: dict[str, float]) -> dict[str, float]:
        """Remember where they are; how many events a second each passed in the last minute."""
        while self._samples and self._samples[0][0] < now - RATE_MS:
            self._samples.popleft()
        found: dict[str, float] = {}
        if self._samples and self._samples[0][0] < now:
            at, before = self._samples[0]
            found = {
                name: max(0.0, (position - before[name]) * 1000 / (now - at))
                for name, position in positions.items()
                if name in before
            }
        self._samples.append((now, positions))
        return found


class _Seen(Struct, frozen=True, kw_only=True):
    """What one look at the tables says."""

    latest: int
    recent: tuple[int, int | None]
    lags: list[Lag]
    positions: dict[str, float]
    """How far the slots of each consumer have come, on average."""
    dead: dict[str, int]

    def per_second(self, now: int) -> float:
        """How many events came in a second, of late."""
        count, first = self.recent
        if not count or first is None:
            return 0.0
        span = RATE_MS if count < LOOKED_AT else max(1, now - first)
        return count * 1000 / span


def _look(tx: Any, now: int) -> _Seen:
    queries = tx.events.queries
    latest = int(queries.value("latest"))
    count, first = queries.row("recent", {"after": latest - LOOKED_AT, "since": now - RATE_MS})
    return _Seen(
        latest=latest,
        recent=(int(count), None if first is None else int(first)),
        lags=measured(tx),
        positions={name: float(position) for name, position in queries.rows("positions")},
        dead={source: int(number) for source, number in queries.rows("count_dead")},
    )


def _state(lag: Lag, seen: _Seen, per_second: float | None) -> ConsumerState:
    return ConsumerState(
        name=lag.consumer,
        role=lag.role.value,
        state=_word(lag),
        depth=lag.depth,
        lag_ms=lag.lag_ms,
        per_second=per_second,
        paused=lag.paused,
        held=lag.held,
        workers=lag.workers,
        wanted_workers=lag.wanted,
        batch=lag.batch,
        timeout_ms=lag.timeout_ms,
        enriches=lag.enriches,
        sheds_from=lag.sheds_from,
        dead=seen.dead.get(lag.consumer, 0),
        sessions={
            "behind": lag.behind,
            "unenriched": lag.unenriched,
            "incomplete": lag.incomplete,
            "waiting": lag.waiting,
        },
    )


def _word(lag: Lag) -> str:
    """What it does, as a status is shown."""
    if lag.paused:
        return "paused"
    if lag.held:
        return "held"
    if not lag.workers:
        return "silent" if lag.depth else "idle"
    if lag.sheds_from is not None:
        return "sheds"
    return "running" if lag.depth else "idle"


def _named(name: str, found: list[ConsumerState]) -> ConsumerState:
    for each in found:
        if each.name == name:
            return each
    raise UnknownConsumer(name, [each.name for each in found])
