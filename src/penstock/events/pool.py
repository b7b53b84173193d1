"""Pools of workers: each is a task that holds slots of a consumer and applies their events."""

import asyncio
import os
import socket
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import structlog

from penstock.events import feed
from penstock.events.anew import MakingAnew, consistency
from penstock.events.consumer import Applying, Consumer, Failing
from penstock.events.enrichment import prepared_with
from penstock.events.event import Event, Session
from penstock.events.feed import (
    MEMBER_MS,
    Fetched,
    Lane,
    Mark,
    MarksChanged,
    Putting,
    SlotsLost,
    buried,
)
from penstock.events.series import Flushing
from penstock.model.errors import InvalidOption
from penstock.model.ids import new_id
from penstock.model.redact import redact
from penstock.model.store_errors import StoreClosed, StoreFull, StoreUnavailable
from penstock.service import Service

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

log = structlog.get_logger("penstock.events")

POLL_SECONDS = 0.1
RENEW_SECONDS = feed.LEASE_MS / 1000 / 4
MEMBER_SECONDS = 1.0
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
RETRY_SECONDS = 0.05
CARE_SECONDS = 1.0
TRIAL_SECONDS = 300.0

STORE_ERRORS = (StoreUnavailable, StoreFull, StoreClosed)


class PoolWorker:
    """Applies the events of some slots, those of a session in their order."""

    def __init__(self, app: "Penstock", consumer: Consumer) -> None:
        self.app = app
        self.consumer = consumer
        self.owner = f"{socket.gethostname()}:{os.getpid()}:{new_id()}"
        self.wanted: tuple[int, int] | None = None
        self.lanes: list[Lane] = []
        self.stopping = asyncio.Event()
        self.claim_at = 0.0
        self._renew_at = 0.0

    async def run(self) -> None:
        """Work until told to stop; then finish what was begun and give the slots back."""
        pause = FIRST_PAUSE
        while not self.stopping.is_set():
            try:
                busy = await self.turn()
                pause = FIRST_PAUSE
            except STORE_ERRORS as error:
                log.warning("consumer_waits", consumer=self.consumer.name, error=str(error))
                await self._rest(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            except Exception as error:
                log.error("consumer_failed", consumer=self.consumer.name, error=redact(repr(error)))
                await self._rest(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
            else:
                if not busy:
                    await self._rest(POLL_SECONDS)
        await self.leave()

    async def leave(self) -> None:
        """Give all slots back; if that fails, they are taken over after a while."""
        lanes, self.lanes = self.lanes, []
        if lanes:
            try:
                await feed.release(self.app, self.consumer, self.owner, lanes)
            except STORE_ERRORS as error:
                log.warning("slots_not_released", consumer=self.consumer.name, error=str(error))

    async def turn(self) -> bool:
        """Apply a batch of every lane; whether there was anything to do."""
        await self._fit()
        began = time.perf_counter()
        busy = False
        for lane in list(self.lanes):
            busy |= await self._step(lane)
        self.lanes = feed.merged(self.lanes)
        if busy:
            self._record("events.busy_ms", 1000 * (time.perf_counter() - began))
        return busy

    async def _rest(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self.stopping.wait()
        except TimeoutError:
            return

    async def _fit(self) -> None:
        """Give back the slots that are no longer ours, and take those that are."""
        now = asyncio.get_running_loop().time()
        first, last = self.wanted or (0, -1)
        outside = [lane for lane in self.lanes if lane.first < first or lane.last > last]
        if outside:
            self.lanes = [lane for lane in self.lanes if lane not in outside]
            await feed.release(self.app, self.consumer, self.owner, outside)
            self.claim_at = now
        held = sum(lane.size for lane in self.lanes)
        if held < last - first + 1 and now >= self.claim_at:
            found = await feed.claim(self.app, self.consumer, self.owner, first, last)
            self.lanes = feed.merged([*self.lanes, *found])
            self.claim_at = now + MEMBER_SECONDS
            self._renew_at = now + RENEW_SECONDS
        elif self.lanes and now >= self._renew_at:
            await feed.renew(self.app, self.consumer, self.owner)
            self._renew_at = now + RENEW_SECONDS

    def _record(self, name: str, value: float, **labels: str) -> None:
        self.app.series.record(name, value, consumer=self.consumer.name, **labels)

    def _took(self, stage: str, began: float) -> float:
        """Record how long a stage of a batch took; when it ended."""
        now = time.perf_counter()
        self._record("events.stage_us", 1_000_000 * (now - began), stage=stage)
        return now

    async def _step(self, lane: Lane) -> bool:
        began = time.perf_counter()
        fetched = await feed.fetch(self.app, self.consumer, lane)
        if fetched.control.paused or fetched.head == lane.position:
            return False
        self._took("fetch", began)
        lane.marks = fetched.marks
        whole = len(fetched.events) < fetched.control.batch
        to = fetched.head if whole else fetched.events[-1].sequence
        events, put_off = sorted_out(fetched)
        try:
            await self._apply(lane, events, put_off, to, fetched)
            if events:
                self._took("whole", began)  # so long each of them was on its way
            if len(events) < len(fetched.events):
                self._record("events.put_off", len(fetched.events) - len(events))
        except SlotsLost:
            self.lanes.remove(lane)
        except MarksChanged:
            pass
        except STORE_ERRORS:
            raise
        except Exception as error:
            log.info("batch_failed", consumer=self.consumer.name, error=redact(repr(error)))
            await self._one_by_one(lane, events, put_off, to, fetched)
        return True

    async def _apply(
        self,
        lane: Lane,
        events: Sequence[Event],
        put_off: Sequence[Putting],
        to: int,
        fetched: Fetched,
    ) -> None:
        """Apply events and move the cursors past them, in one commit."""
        consumer, began = self.consumer, time.perf_counter()
        prepared: Any = None
        if events:
            allowed = bool(fetched.control.enriches)
            async with asyncio.timeout(fetched.control.timeout_ms / 1000):
                prepared, left_out = await prepared_with(
                    self.app, consumer, events, allowed=allowed
                )
            began = self._took("prepare", began)
            if left_out and consumer.reset is not None:
                put_off = [*put_off, *unenriched(events, left_out)]

        def work(tx: Any) -> None:
            feed.move(tx, consumer, self.owner, lane, to, put_off)
            if events:
                consumer.apply(Applying(tx, consumer.name), prepared)

        await self.app.transact(work)
        lane.position = to
        if events:
            self._took("apply", began)
            self._record("events.applied", len(events))

    async def _one_by_one(
        self,
        lane: Lane,
        events: Sequence[Event],
        put_off: Sequence[Putting],
        to: int,
        fetched: Fetched,
    ) -> None:
        """Find the event that fails: others are applied, and it is given up after some tries."""
        waiting: set[Session] = set()
        left = list(put_off)
        try:
            for event in events:
                passed = [each for each in left if each.sequence < event.sequence]
                left = left[len(passed) :]
                if event.session in waiting:
                    await self._apply(lane, [], passed, event.sequence, fetched)
                    continue
                error = await self._tried(lane, event, passed, fetched)
                if error is not None:
                    await self._give_up(lane, event, passed, error)
                    if self.consumer.failing is Failing.WAIT:
                        waiting.add(event.session)
            await self._apply(lane, [], left, to, fetched)
        except SlotsLost:
            self.lanes.remove(lane)
        except MarksChanged:
            return

    async def _tried(
        self, lane: Lane, event: Event, passed: Sequence[Putting], fetched: Fetched
    ) -> Exception | None:
        """Apply one event; the error if it fails again and again."""
        failed: Exception | None = None
        for n in range(self.consumer.tries):
            if n:
                await asyncio.sleep(RETRY_SECONDS * 2 ** (n - 1))
            try:
                await self._apply(lane, [event], passed, event.sequence, fetched)
            except (SlotsLost, MarksChanged, *STORE_ERRORS):
                raise
            except Exception as error:
                failed = error
            else:
                return None
        return failed

    async def _give_up(
        self, lane: Lane, event: Event, passed: Sequence[Putting], error: Exception
    ) -> None:
        """Park an event with its reason, and go on after it."""
        consumer, reason = self.consumer, redact(f"{type(error).__name__}: {error}")[:1_000]
        mark = Mark.WAITING if consumer.failing is Failing.WAIT else Mark.INCOMPLETE
        marked = Putting(event.session, mark, reason, event.sequence)

        def work(tx: Any) -> None:
            feed.move(tx, consumer, self.owner, lane, event.sequence, [*passed, marked])
            tx.events.queries.run("bury", buried(consumer, event, reason, tx.now))

        await self.app.transact(work)
        lane.position = event.sequence
        log.warning("event_parked", consumer=consumer.name, event_id=event.event_id, error=reason)


def sorted_out(fetched: Fetched) -> tuple[list[Event], list[Putting]]:
    """The events to apply, and the sessions to mark because one of theirs is put off now."""
    sheds_from = fetched.control.sheds_from
    waits = {session for session, mark in fetched.marked.items() if mark in feed.PUT_OFF}
    events: list[Event] = []
    put_off: list[Putting] = []
    for event in fetched.events:
        session = event.session
        if session in waits:
            continue
        if sheds_from is not None and event.priority >= sheds_from:
            waits.add(session)
            reason = f"events of priority {sheds_from} and above are put off"
            put_off.append(Putting(session, Mark.BEHIND, reason, event.sequence))
            continue
        events.append(event)
    return events, put_off


def unenriched(events: Sequence[Event], left_out: Sequence[str]) -> list[Putting]:
    """The sessions to mark because their events are applied without an enrichment."""
    first = {event.session: event.sequence for event in reversed(events)}
    reason = f"applied without {', '.join(left_out)}"
    return [Putting(each, Mark.UNENRICHED, reason, first[each]) for each in first]


class Pool(Service):
    """The workers that this process has for a consumer: its share of all."""

    def __init__(self, app: "Penstock", consumer: Consumer, member: str) -> None:
        super().__init__(MEMBER_SECONDS)
        self.name = f"events.{consumer.name}"
        self.consumer = consumer
        self.workers: list[PoolWorker] = []
        self.leads = False
        """Whether this process does what one of them does for all."""
        self._app = app
        self._member = member
        self._tasks: dict[PoolWorker, asyncio.Task[None]] = {}
        self._declared = False

    async def run_once(self) -> None:
        """Tell that this process is there, and have as many workers as its share."""
        if not self._declared:
            await feed.declare(self._app, self.consumer)
            self._declared = True
        self.fit(await self._shares())

    async def stop(self) -> None:
        """Have the workers finish their batches, and give their slots to others."""
        await super().stop()
        self.fit([])
        await asyncio.gather(*self._tasks.values())
        name, member = self.consumer.name, self._member

        def work(tx: Any) -> None:
            tx.events.queries.run("forget_members", (name, member, tx.now - MEMBER_MS))

        try:
            await self._app.transact(work)
        except STORE_ERRORS as error:
            log.warning("member_not_forgotten", consumer=name, error=str(error))

    async def _shares(self) -> list[tuple[int, int]]:
        consumer, member, count = self.consumer, self._member, len(self.workers)

        def work(tx: Any) -> tuple[bool, list[tuple[int, int]]]:
            queries = tx.events.queries
            queries.run("see_member", (consumer.name, member, count, tx.now))
            seen = (tx.now - MEMBER_MS, tx.now + MEMBER_MS)
            members = queries.rows("members", (consumer.name, *seen))
            control = feed.Control(*queries.row("control", (consumer.name,)))
            ranked = [str(name) for (name,) in members]
            rank = ranked.index(member)
            shares = feed.shares(consumer.partitions, control.workers, len(ranked), rank)
            return rank == 0, shares

        self.leads, shares = await self._app.transact(work)
        return shares

    def fit(self, shares: Sequence[tuple[int, int]]) -> None:
        """Start and stop workers, and tell each which slots are its own."""
        self._tasks = {worker: task for worker, task in self._tasks.items() if not task.done()}
        while len(self.workers) > len(shares):
            self.workers.pop().stopping.set()
        while len(self.workers) < len(shares):
            worker = PoolWorker(self._app, self.consumer)
            self.workers.append(worker)
            self._tasks[worker] = asyncio.create_task(worker.run(), name=self.name)
        for worker, share in zip(self.workers, shares, strict=True):
            worker.wanted = share


class Care(Service):
    """What one process of a consumer does beside its workers: sessions anew, and trials."""

    def __init__(self, app: "Penstock", pool: Pool) -> None:
        super().__init__(CARE_SECONDS)
        self.name = f"events.{pool.consumer.name}.care"
        self._app = app
        self._pool = pool
        self._anew = MakingAnew(app, pool.consumer)
        self._try_at = 0.0

    async def run_once(self) -> None:
        """Make sessions anew that were put off; now and then see whether replays agree."""
        if not self._pool.leads:
            return
        if await self._anew.run_once():
            self.wake()
        now = asyncio.get_running_loop().time()
        if now >= self._try_at:
            self._try_at = now + TRIAL_SECONDS
            share = await consistency(self._app, self._pool.consumer)
            if share is not None:
                name = self._pool.consumer.name
                self._app.series.record("events.consistency", share, consumer=name)


def has_consumers(app: "Penstock") -> bool:
    """Whether there is anything for `penstock up` to run."""
    return bool(app.consumer.known())


async def consume(app: "Penstock", names: Sequence[str] = ()) -> None:
    """Run consumers, all or some, until cancelled."""
    known = app.consumer.known()
    chosen = [app.consumer.get(name) for name in names] or list(known.values())
    if not chosen:
        raise InvalidOption("consumer", "none", "declared with @app.consumer, in MODULE:APP")
    member = f"{socket.gethostname()}:{os.getpid()}:{new_id()}"
    pools = [Pool(app, consumer, member) for consumer in chosen]
    beside = [*(Care(app, pool) for pool in pools), Flushing(app)]
    try:
        for service in (*pools, *beside):
            await service.start()
        await asyncio.Event().wait()
    finally:
        await asyncio.gather(*(pool.stop() for pool in pools))
        for service in beside:
            await service.stop()


async def catch_up(app: "Penstock", *names: str) -> None:
    """Apply what waits, in this task, until the log has no more: for tests and examples."""
    for name in names or app.consumer.known():
        consumer = app.consumer.get(name)
        await feed.declare(app, consumer)
        worker = PoolWorker(app, consumer)
        worker.wanted = feed.shares(consumer.partitions, 1, 1, 0)[0]
        while await worker.turn():
            continue
        await worker.leave()
