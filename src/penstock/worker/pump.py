"""The cycle of a worker: settle what ended, mark what started, claim the next, all in one commit.

What a cycle brings is only launched once the next one is under way, so that the disk and the
handlers work at the same time.
"""

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress

import structlog

from penstock.model.errors import PenstockError
from penstock.model.failure import Failure
from penstock.model.job import Lease
from penstock.model.outcome import HandedBack, Settlement, buried, unstarted
from penstock.model.retry import ErrorClass
from penstock.model.store_errors import StoreError
from penstock.service import Seldom
from penstock.store.contract import Claim, Claimed, Report, Store
from penstock.worker.job_log import about
from penstock.worker.own_limits import OwnLimits
from penstock.worker.reports import Reports
from penstock.worker.running import RunningSlots

log = structlog.get_logger("penstock.worker")

PREFETCH_SECONDS = 0.05
RETRY_SECONDS = 0.25
LONGEST_RETRY_SECONDS = 2.0
MAX_REFUSALS = 3


class Pump:
    """Moves leases in and settlements out."""

    def __init__(
        self,
        store: Store,
        claim: Callable[[int, int, float, Mapping[str, int]], Claim],
        launch: Callable[[Lease], None],
        running: Callable[[], Iterable[Lease]],
        given_up: Callable[[], Collection[str]],
        reports: Reports,
        own_limits: OwnLimits,
        *,
        concurrency: int,
        max_prefetch: int,
        poll_seconds: float,
        internal_error: Callable[[], None],
        claimed: Callable[[Sequence[Lease]], None] | None = None,
    ) -> None:
        self.running = 0
        self.waiting: deque[Lease] = deque()
        self.stale_total = 0
        self.polled_at = time.monotonic()
        self._tried_at = self.polled_at
        self.accepting = True
        self._failures = 0
        self._store = store
        self._claim = claim
        self._launch = launch
        self._concurrency = concurrency
        self._max_prefetch = max_prefetch
        self._poll_seconds = poll_seconds
        self._internal_error = internal_error
        self._claimed = claimed
        self._settled: list[Settlement] = []
        self._refused: Counter[str] = Counter()
        self._reports = reports
        self._started: list[tuple[str, int]] = []
        self._mean_seconds = 1.0
        self._hungry = True
        self._looked_everywhere = False
        self._cycling = asyncio.Lock()
        self._next_poll = 0.0
        self._wake = asyncio.Event()
        self._may_warn = Seldom()
        self.slots = RunningSlots(running)
        self._running_leases = running
        self._given_up = given_up
        self._answer_lost = False
        self._own_limits = own_limits
        self._owner = claim(0, 0, 0, {}).owner

    @property
    def idle(self) -> bool:
        """Nothing running, waiting or to write, and the last claim found nothing anywhere."""
        held = self.running or self.waiting or self.slots.held()
        busy = held or self._settled or self._hungry or self._cycling.locked()
        return self._looked_everywhere and not busy and self._own_limits.frees_in is None

    @property
    def prefetched(self) -> list[Lease]:
        """Every lease that has not started; safe to call from any thread."""
        return [*list(self.waiting), *self.slots.held()]

    @property
    def unwritten(self) -> bool:
        """Whether settlements still wait to be written."""
        return bool(self._settled)

    @property
    def degraded(self) -> bool:
        """Whether the store failed the last cycle."""
        return self._failures > 0

    @property
    def poll_age_ms(self) -> int:
        """How long ago the store last answered; a worker with no free slot has no need to ask."""
        if self.running >= self._concurrency:
            return 0
        return int((time.monotonic() - self.polled_at) * 1000)

    @property
    def overdue_seconds(self) -> float:
        """How long it has not looked for work although it should; a failed look is one, too."""
        if self.running >= self._concurrency or not self.accepting:
            return 0.0
        return max(0.0, time.monotonic() - max(self._tried_at, self._next_poll))

    def wake(self) -> None:
        """Something changed in the store: look for work."""
        self._hungry = True
        self._wake.set()

    def finished(self, lease: Lease, settlement: Settlement | None, seconds: float) -> None:
        """An execution ended; start the next prefetched one in its place."""
        self.running -= 1
        if not self.slots.quiet:
            self.slots.free(lease)
        if self._own_limits.may_wait(lease.type):
            self._hungry = True
        self._mean_seconds += (seconds - self._mean_seconds) * 0.05
        if settlement is not None:
            self._settled.append(settlement)
        following = self._next() if self.accepting else None
        if following is not None:
            self._start(following)
        self._wake.set()

    def drop(self, leases: Collection[tuple[str, int]]) -> None:
        """Forget prefetched leases that were lost; each is an id and a fence."""
        self.waiting = deque(w for w in self.waiting if (w.id, w.fence) not in leases)
        self.slots.drop(leases)

    def hand_over(self) -> list[Lease]:
        """Give up every lease that waits here, and return them."""
        given_up = [*self.waiting, *self.slots.clear()]
        self.waiting.clear()
        return given_up

    def give_back(self, settlements: Sequence[Settlement]) -> None:
        """Settle leases that never ran here."""
        self._settled.extend(settlements)
        self._wake.set()

    async def settled(self) -> None:
        """Return when no write is under way."""
        async with self._cycling:
            return

    async def run(self) -> None:
        """Cycle until cancelled."""
        while True:
            if not self._due():
                await self._rest()
            await self.cycle()

    async def cycle(self) -> None:
        """One commit: settle, mark, claim; submitted together, they share a transaction."""
        async with self._cycling:
            await self._cycle()

    async def _cycle(self) -> None:
        self._wake.clear()
        if self._answer_lost:
            await self._give_back_unheard()
        self._tried_at = time.monotonic()
        settled, self._settled = self._settled, []
        last_words = self._reports.last_words(settled)
        started, self._started = self._started, []
        if settled and not self.running:
            self._hungry = True  # what just ended may have enqueued children
        want = self._want()
        if want:
            self._hungry = False
        if settled or started or last_words:
            over = {settlement.id for settlement in settled}
            writing = asyncio.gather(
                self._report(last_words),
                self._settle(settled),
                self._mark([lease for lease in started if lease[0] not in over]),
                self._fetch(want),
                return_exceptions=True,
            )
            await asyncio.sleep(0)  # they are with the store's writer before the handlers run on
            self._fill()
            failures = [each for each in await writing if isinstance(each, BaseException)]
        else:
            failures = await self._fetch_alone(want)
        self._tried_at = time.monotonic()
        if not (self._settled or self._started) or not self._due():
            self._fill()  # with nothing to write, the next commit can wait for the handlers
        if not failures:
            self._failures = 0
            self.polled_at = time.monotonic()
            return
        for failure in failures:
            if not isinstance(failure, Exception):
                raise failure
            if not isinstance(failure, PenstockError):
                log.error("cycle_failed", worker_id=self._owner, exc_info=failure)
                self._internal_error()
        await self._back_off(failures[0])

    async def _fetch_alone(self, want: int) -> list[BaseException]:
        """Claim with nothing to write beside it, which needs no tasks; return what it raised."""
        self._fill()
        try:
            await self._fetch(want)
        except Exception as error:
            return [error]
        return []

    async def _report(self, last_words: list[Report]) -> None:
        """Written first: once a lease is settled, its words would be stale."""
        if not last_words:
            return
        try:
            await self._reports.write(last_words)
        except PenstockError:
            self._reports.put_back(last_words)
            raise

    async def _settle(self, settled: list[Settlement]) -> None:
        if not settled:
            return
        try:
            stale = await self._store.jobs.settle(self._owner, settled)
        except StoreError:
            self._settled = settled + self._settled
            raise
        except Exception as error:
            await self._settle_apart(settled, error)
            raise
        # Under a lease that was only given back, nothing ran that could be stale.
        ran = {s.id: s for s in settled if not isinstance(s, HandedBack) or s.started}
        for job_id in ran.keys() & set(stale):
            self.stale_total += 1
            took = ran[job_id].duration_ms
            told = about(ran[job_id], self._owner)
            log.warning("stale_settlement", **told, duration_ms=took)

    async def _settle_apart(self, settled: list[Settlement], error: Exception) -> None:
        """One that cannot be written must not keep the others; refused thrice, it is buried."""
        if len(settled) == 1:
            (settlement,) = settled
            self._refused[settlement.id] += 1
            if self._refused[settlement.id] >= MAX_REFUSALS:
                settlement = buried(settlement, Failure.of(error, ErrorClass.INTERNAL_ERROR))
            self._settled.append(settlement)
            return
        for settlement in settled:
            with suppress(Exception):
                await self._settle([settlement])

    async def _mark(self, started: list[tuple[str, int]]) -> None:
        if not started:
            return
        try:
            await self._store.jobs.start(self._owner, started)
        except Exception:
            self._started = started + self._started
            raise

    async def _fetch(self, want: int) -> None:
        if not want:
            return
        free = max(0, self._concurrency - self.running - len(self.waiting))
        room = self._own_limits.room(self._running_leases(), self.prefetched, want)
        try:
            claimed = await self._store.jobs.claim(self._claim(want, free, self._ahead(), room))
        except Exception:
            self._hungry = self._answer_lost = True
            raise
        self._take(claimed, want)

    async def _give_back_unheard(self) -> None:
        """Hand back what a claim may have granted before its answer was lost: nobody runs it."""
        known = {lease.id for lease in (*self._running_leases(), *self.prefetched)}
        known |= {settlement.id for settlement in self._settled} | set(self._given_up())
        with suppress(PenstockError):
            held = await asyncio.to_thread(self._store.leases.held, self._owner)
            unheard = await self._store.reader.get([i for i in held if i not in known])
            self._settled += [unstarted(job) for job in unheard if job.lease_owner == self._owner]
            self._answer_lost = False

    def _take(self, claimed: Claimed, want: int) -> None:
        self._hungry = self._hungry or len(claimed.leases) == want
        self._looked_everywhere = claimed.whole
        pause = self._poll_seconds
        if claimed.next_due_in_ms is not None:
            pause = min(pause, claimed.next_due_in_ms / 1000)
        self._next_poll = time.monotonic() + pause
        again = {lease.id for lease in claimed.leases if lease.fence > 2}
        if again:  # an older lease on the same job that still waits here was taken away
            self.waiting = deque(w for w in self.waiting if w.id not in again)
            self.slots.drop({(w.id, w.fence) for w in self.slots.held() if w.id in again})
        if self._claimed is not None:
            self._claimed(claimed.leases)
        self._own_limits.granted(claimed.leases)
        self.slots.allow(claimed.slots)
        self.waiting.extend(claimed.leases)

    def _fill(self) -> None:
        """Start as many of the waiting leases as there are free slots."""
        while self.accepting and self.running < self._concurrency:
            lease = self._next()
            if lease is None:
                return
            self._start(lease)

    def _next(self) -> Lease | None:
        """The next waiting lease that no limit holds back."""
        if self.slots.quiet:
            return self.waiting.popleft() if self.waiting else None
        freed = self.slots.next()
        if freed is not None:
            return freed
        while self.waiting:
            lease = self.waiting.popleft()
            if self.slots.allows(lease):
                return lease
            self.slots.hold(lease)
        return None

    def _start(self, lease: Lease) -> None:
        self.running += 1
        self._own_limits.begins(lease)
        if not self.slots.quiet:
            self.slots.take(lease)
        if lease.started_at is None:
            self._started.append((lease.id, lease.fence))
        self._launch(lease)

    def _want(self) -> int:
        if not self.accepting:
            return 0
        if not self._hungry and time.monotonic() < self._next_poll:
            return 0
        return self._capacity()

    def _capacity(self) -> int:
        """How many more leases this worker would take now."""
        taken = self.running + len(self.waiting)
        held = self._concurrency + self._prefetch()
        # One half runs while the store settles the other; no free slot waits for that.
        at_once = max(held // 2, self._concurrency - taken)
        return max(0, min(held - taken, at_once))

    def _prefetch(self) -> int:
        """What this worker gets through in a twentieth of a second: long jobs prefetch nothing."""
        covered = self._concurrency * PREFETCH_SECONDS / max(self._mean_seconds, 1e-6)
        return min(self._max_prefetch, int(covered))

    def _ahead(self) -> float:
        """The same for one slot under a limit."""
        covered = PREFETCH_SECONDS / max(self._mean_seconds, 1e-6)
        return min(covered, self._max_prefetch / (self.slots.fewest or self._concurrency))

    def _due(self) -> bool:
        return bool(self._settled or self._started) or self._want() > 0

    async def _rest(self) -> None:
        """Wait until something ends or changes; with a free slot, no longer than to the poll."""
        pause = None
        if self.accepting and self._capacity() > 0:
            pause = max(0.0, self._next_poll - time.monotonic())
            frees_in = self._own_limits.frees_in
            pause = pause if frees_in is None else min(pause, frees_in)
        try:
            async with asyncio.timeout(pause):
                await self._wake.wait()
        except TimeoutError:
            self._hungry = True

    async def _back_off(self, error: BaseException) -> None:
        if self._may_warn():
            log.warning("store_unavailable", worker_id=self._owner, error=str(error))
        pause = min(LONGEST_RETRY_SECONDS, RETRY_SECONDS * 2 ** min(self._failures, 10))
        self._failures += 1
        # Apart from each other, or a server that comes back meets all its workers at once.
        await asyncio.sleep(pause * random.uniform(0.5, 1.0))
