"""Backpressure: a queue takes jobs up to its limit; then callers wait or come back later."""

import asyncio
import inspect
import threading
import time
from collections.abc import Awaitable, Callable, Container, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar
from weakref import WeakKeyDictionary

from msgspec import Struct

from penstock.app import job_log, tracing
from penstock.app.gates import Gates, known, there_already
from penstock.extension import NotKnownYet, Way
from penstock.model.clock import utc
from penstock.model.controls import DepthLimits
from penstock.model.errors import InvalidOption, PenstockError, QueueFull
from penstock.model.job import Enqueued, NewJob
from penstock.model.options import MAX_SECONDS

if TYPE_CHECKING:
    from datetime import datetime

    from penstock.app.penstock import Penstock

TRUST_SECONDS = 1.0
UNLIMITED_TRUST_SECONDS = 5.0
"""Without a limit, a depth only tells when a job may start, as roughly as drain rates do."""

_NO_LIMIT = 1 << 62


class Capacity:
    """A queue's depth as it was measured, and what went in from here since."""

    __slots__ = ("_lock", "depth", "limit", "measured_at", "queue", "taken", "trusted", "writing")

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self._lock = threading.Lock()
        self.limit = 0
        self.depth = 0
        self.taken = 0
        self.writing = 0
        self.trusted = 0
        self.measured_at = float("-inf")

    @property
    def ahead(self) -> int:
        """How many jobs wait there, about."""
        return self.depth + self.taken

    @property
    def full(self) -> bool:
        """Whether the queue is at its limit."""
        return 0 < self.limit <= self.depth + self.taken

    def measured(self, depth: int, limit: int, now: float) -> None:
        """Remember a depth; what is being written meanwhile may or may not be in it."""
        self.depth = depth
        self.limit = limit
        self.taken = self.writing
        self.measured_at = now
        # Others fill the same queue. Near the limit, a thousandth of it saves asking every time.
        self.trusted = max((limit - depth) // 2, limit // 1000) if limit else _NO_LIMIT

    def surely_has(self, jobs: int, now: float) -> bool:
        """Whether there is room for so many without measuring again."""
        seconds = TRUST_SECONDS if self.limit else UNLIMITED_TRUST_SECONDS
        return now - self.measured_at < seconds and self.taken + jobs <= self.trusted

    def enter(self, jobs: int) -> None:
        """So many are being written."""
        with self._lock:
            self.taken += jobs
            self.writing += jobs

    def entered(self, jobs: int) -> None:
        """They are written, or could not be."""
        with self._lock:
            self.writing -= jobs


WINDOW_MS = 60_000
RATES_TRUST_SECONDS = 5.0


class DrainRates:
    """Jobs per second that left each queue in the last minute, and how many workers live."""

    def __init__(self, app: "Penstock") -> None:
        self.live_workers: int | None = None
        self._app = app
        self._per_second: dict[str, float] = {}
        self._read_at = float("-inf")
        self._reading: asyncio.Task[None] | None = None

    def of(self, queue: str) -> float | None:
        """The rate as it was last read; none where nothing has left the queue."""
        return self._per_second.get(queue)

    def forget(self) -> None:
        """Begin afresh."""
        self._per_second = {}
        self._read_at = float("-inf")

    def look(self) -> None:
        """Read them again in the background, if they are old."""
        reading = self._reading is not None and not self._reading.done()
        if not reading and self._old:
            self._reading = asyncio.get_running_loop().create_task(self._read())

    async def read(self) -> None:
        """Read them, if they are old; if somebody is reading them, wait for that."""
        self.look()
        if self._reading is not None and self._reading.get_loop() is asyncio.get_running_loop():
            await asyncio.shield(self._reading)

    async def _read(self) -> None:
        """Read them; a store that does not answer leaves them as they were."""
        self._read_at = time.monotonic()
        with suppress(PenstockError):
            windows = await self._app.store.metrics.window(WINDOW_MS)
            left: dict[str, float] = {}
            for window in windows[1:]:
                ended = window.completed + window.cancelled + window.dead
                left[window.queue] = left.get(window.queue, 0.0) + ended * 1000 / WINDOW_MS
            self._per_second = {queue: rate for queue, rate in left.items() if rate}
            workers = await self._app.store.workers.list()
            self.live_workers = sum(worker.alive for worker in workers)

    @property
    def _old(self) -> bool:
        return time.monotonic() - self._read_at >= RATES_TRUST_SECONDS

    async def close(self) -> None:
        """Wait for a reading that is under way."""
        reading, self._reading = self._reading, None
        if reading is not None and reading.get_loop() is asyncio.get_running_loop():
            await reading


Hook = Callable[[list[NewJob]], Any]
A = TypeVar("A", bound=Hook)

REJECTED_ABOVE = 5
"""Less urgent jobs than this are refused by a full queue at once."""

LOOK_AGAIN_SECONDS = 0.05
LIMITS_TRUSTED_SECONDS = 5.0
UNKNOWN_RATE_SECONDS = 30.0
MOST_COUNTED = 20_000
"""A queue without a limit is counted so far, to tell when a job will start."""

MOST_CAPACITIES = 1_000


class How(TypedDict, total=False):
    """How jobs are enqueued.

    `connection`: in that transaction, which never waits. `wait`: for so many seconds while the
    queue is full. `force`: whatever its limit, as a running job does with its children.
    """

    connection: object | None
    wait: float | bool | None
    force: bool


def check_wait(value: Any) -> Any:
    """Refuse what says not for how long to wait; the value itself."""
    if value is not None and (not isinstance(value, int | float) or not 0 <= value < MAX_SECONDS):
        raise InvalidOption("wait", value, "a number of seconds, or False not to wait")
    return value


class Admission:
    """Lets jobs into queues."""

    def __init__(self, app: "Penstock") -> None:
        self.rates = DrainRates(app)
        self.gates = Gates(app)
        self._app = app
        self._hooks: list[Hook] = []
        self._capacities: dict[str, Capacity] = {}
        self._most_capacities = MOST_CAPACITIES
        self._limits = DepthLimits((), app.settings.queue_limit)
        self._limits_read_at = float("-inf")
        self._measuring: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]
        self._measuring = WeakKeyDictionary()
        self._log: Any | None = None

    def forget(self) -> None:
        """Begin afresh: the store may be another one."""
        self.rates.forget()
        self._capacities.clear()
        self._limits_read_at = float("-inf")
        self._log = job_log.detailed("penstock.app")

    def add_hook(self, hook: A) -> A:
        """Ask a function of the user's about every enqueue."""
        if not callable(hook):
            raise InvalidOption("admit", hook, "a function of a list of jobs")
        self._hooks.append(hook)
        return hook

    def enqueue(self, jobs: Sequence[NewJob], how: How) -> Awaitable[list[Enqueued]]:
        """Write jobs once their queues have room."""
        return self._write(jobs, how) if tracing.is_off() else self._write_traced(jobs, how)

    def enqueue_now(self, jobs: Sequence[NewJob], how: How) -> list[Enqueued] | None:
        """Write jobs in the calling thread; None, with nothing done, if it takes an event loop.

        That is so where a hook might have to be awaited or a queue's depth to be measured.
        """
        if how:
            if how.get("connection") is not None:
                return None
            self._wait_seconds(how.get("wait"))
        entering = [] if how.get("force") else self._enter_at_once(jobs)
        if entering is None:
            return None
        try:
            if self._app.extensions.gates or self._app.extensions.counters:
                self.gates.let_in(jobs, Way.CHILD if how.get("force") else Way.ENQUEUE)
        except NotKnownYet:
            return None
        write = self._app.store.jobs.enqueue_now
        try:
            with _Inside(entering):
                if tracing.is_off():
                    answers = write(jobs)
                else:
                    with tracing.sending(jobs) as sent:
                        answers = write(sent)
        except Exception:
            self.gates.give_back(jobs)
            raise
        if self._app.extensions.counters:
            self.gates.give_back(there_already(jobs, answers))
        if self._log is not None:
            job_log.tell_enqueued(self._log, jobs, answers)
        return answers

    async def _write_traced(self, jobs: Sequence[NewJob], how: How) -> list[Enqueued]:
        with tracing.sending(jobs) as sent:
            return await self._write(sent, how)

    async def _write(self, jobs: Sequence[NewJob], how: How) -> list[Enqueued]:
        write = self._app.store.jobs.enqueue
        connection = how.get("connection")
        wait = self._wait_seconds(how.get("wait"))
        if self._app.extensions.gates:
            way = Way.CHILD if how.get("force") else Way.ENQUEUE
            await known(lambda: self.gates.ask(jobs, way))
        entering = [] if how.get("force") else self._enter_at_once(jobs)
        if entering is None:
            entering = await self._enter(jobs, wait if connection is None else 0)
        if self._app.extensions.counters:
            way = Way.CHILD if how.get("force") else Way.ENQUEUE
            await known(lambda: self.gates.take(jobs, way))
        try:
            with _Inside(entering):
                answers = await write(jobs, connection=connection)
        except Exception:  # who gives up waiting does not know whether they were written
            self.gates.give_back(jobs)
            raise
        if self._app.extensions.counters:
            self.gates.give_back(there_already(jobs, answers))
        if self._log is not None:
            job_log.tell_enqueued(self._log, jobs, answers)
        return answers

    def _enter_at_once(self, jobs: Sequence[NewJob]) -> list[tuple[Capacity, int]] | None:
        """Return what `_enter` does; None if that takes a hook's answer or a measurement."""
        if self._hooks:
            return None
        now = time.monotonic()
        entering: list[tuple[Capacity, int]] = []
        for queue, ready in self._ready(jobs).items():
            capacity = self._capacity(queue)
            if not capacity.surely_has(len(ready), now):
                return None
            entering.append((capacity, len(ready)))
        return entering

    async def _enter(self, jobs: Sequence[NewJob], seconds: float) -> list[tuple[Capacity, int]]:
        """Return when the queues of all jobs have room: which, and for how many."""
        for hook in self._hooks:
            answer = hook(list(jobs))
            if inspect.isawaitable(answer):
                await answer
        entering = [(self._capacity(queue), ready) for queue, ready in self._ready(jobs).items()]
        for capacity, ready in entering:
            if not capacity.surely_has(len(ready), time.monotonic()):
                await self._find_capacity(capacity, ready, seconds)
        return [(capacity, len(ready)) for capacity, ready in entering]

    def admit_now(self, jobs: Sequence[NewJob], measured: Container[str]) -> bool:
        """Ask hooks and gates inside a transaction; whether the queues have room, too.

        Queues that were `measured` for this transaction have, as far as anybody can say.
        """
        for hook in self._hooks:
            answer = hook(list(jobs))
            if inspect.isawaitable(answer):
                if inspect.iscoroutine(answer):
                    answer.close()
                raise InvalidOption("admit", hook, "a plain function, to be asked in a transaction")
        self.gates.ask(jobs, Way.ENQUEUE)
        now = time.monotonic()
        return all(
            queue in measured or self._capacity(queue).surely_has(len(found), now)
            for queue, found in self._ready(jobs).items()
        )

    def took(self, jobs: Sequence[NewJob]) -> None:
        """Count jobs that a transaction has enqueued against the limits of their queues."""
        for queue, ready in self._ready(jobs).items() if jobs else ():
            capacity = self._capacity(queue)
            capacity.enter(len(ready))
            capacity.entered(len(ready))

    async def find_room(self, jobs: Sequence[NewJob]) -> list[str]:
        """Measure the queues of jobs, which are returned; QueueFull if one has no room now."""
        ready = self._ready(jobs)
        for queue, found in ready.items():
            await self._find_capacity(self._capacity(queue), found, 0)
        return list(ready)

    def ahead_in(self, queue: str) -> int | None:
        """Return how many jobs wait in a queue; None if there are more than anybody counts."""
        capacity = self._capacities.get(queue)
        if capacity is None or (not capacity.limit and capacity.depth >= MOST_COUNTED):
            return None
        return capacity.ahead

    def _wait_seconds(self, wait: float | bool | None) -> float:
        if check_wait(wait) is None or wait is True:
            return self._app.settings.enqueue_timeout
        return float(wait or 0)

    def _ready(self, jobs: Sequence[NewJob]) -> dict[str, Sequence[NewJob]]:
        """The jobs that could start at once, by queue; others do not make a queue any deeper."""
        if len(jobs) == 1:
            return {} if self._later(jobs[0]) else {jobs[0].queue: jobs}
        plain = not any(job.delay_ms or job.after or job.scheduled_at for job in jobs)
        if plain and len({job.queue for job in jobs}) == 1:
            return {jobs[0].queue: jobs}
        queues: dict[str, list[NewJob]] = {}
        for job in jobs:
            if not self._later(job):
                queues.setdefault(job.queue, []).append(job)
        return dict(queues)

    def _later(self, job: NewJob) -> bool:
        at = job.scheduled_at
        return bool(job.delay_ms or job.after) or (
            at is not None and at > self._app.store.clock.now()
        )

    def _capacity(self, queue: str) -> Capacity:
        capacity = self._capacities.get(queue)
        if capacity is None:
            self._forget_old_capacities()
            capacity = self._capacities[queue] = Capacity(queue)
        return capacity

    def _forget_old_capacities(self) -> None:
        """With a queue for each customer they would pile up; an old one would be measured anew."""
        if len(self._capacities) < self._most_capacities:
            return
        fresh = time.monotonic() - TRUST_SECONDS
        kept = {
            queue: capacity
            for queue, capacity in self._capacities.items()
            if capacity.writing or capacity.measured_at > fresh
        }
        self._capacities = kept
        self._most_capacities = max(MOST_CAPACITIES, 2 * len(kept))

    async def _find_capacity(
        self, capacity: Capacity, jobs: Sequence[NewJob], seconds: float
    ) -> None:
        """Measure; if the queue is full, wait until it is not, or refuse."""
        await self._measure(capacity)
        if not capacity.full:
            return
        if seconds <= 0 or any(job.priority > REJECTED_ABOVE for job in jobs):
            raise await self._refusal(capacity)
        listener = self._app.store.subscribe()
        try:
            async with asyncio.timeout(seconds):
                while capacity.full:
                    await listener.wait(TRUST_SECONDS)
                    await asyncio.sleep(
                        capacity.measured_at + LOOK_AGAIN_SECONDS - time.monotonic()
                    )
                    await self._measure(capacity)
        except TimeoutError:
            raise await self._refusal(capacity) from None
        finally:
            listener.close()

    async def _refusal(self, capacity: Capacity) -> QueueFull:
        await self.rates.read()
        per_second = self.rates.of(capacity.queue)
        # Not for one job's capacity: everyone who is told so comes back for it.
        emptier = max(1, capacity.limit // 10)
        seconds = emptier / per_second if per_second else UNKNOWN_RATE_SECONDS
        return QueueFull(
            capacity.queue,
            capacity.ahead,
            capacity.limit,
            round(min(max(seconds, 1), 3600), 1),
            self.rates.live_workers,
        )

    async def _measure(self, capacity: Capacity) -> None:
        """Count what waits in a queue, unless somebody just did."""
        began_at = time.monotonic()
        async with self._one_at_a_time():
            just_now = time.monotonic() - capacity.measured_at < LOOK_AGAIN_SECONDS
            if capacity.measured_at >= began_at or (just_now and capacity.full):
                return
            self.rates.look()
            limit = await self._limit_of(capacity.queue)
            depth = await self._app.store.jobs.depth(capacity.queue, 2 * limit or MOST_COUNTED)
            capacity.measured(depth, limit, time.monotonic())

    def _one_at_a_time(self) -> asyncio.Lock:
        return self._measuring.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    async def _limit_of(self, queue: str) -> int:
        if time.monotonic() - self._limits_read_at >= LIMITS_TRUSTED_SECONDS:
            limits = await self._app.store.controls.limits()
            self._limits = DepthLimits(limits, self._app.settings.queue_limit)
            self._limits_read_at = time.monotonic()
        return self._limits.of(queue)


class _Inside:
    """Counts jobs as taken while they are being written."""

    # A class and not a generator, because it surrounds every enqueue.
    __slots__ = ("_entering",)

    def __init__(self, entering: Sequence[tuple[Capacity, int]]) -> None:
        self._entering = entering

    def __enter__(self) -> None:
        for capacity, number in self._entering:
            capacity.enter(number)

    def __exit__(self, *_: object) -> None:
        for capacity, number in self._entering:
            capacity.entered(number)


class Estimate(Struct, frozen=True, gc=False):
    """Where a job stood when it was enqueued; the rest is worked out when somebody asks."""

    rates: "DrainRates"
    queue: str
    ahead: int
    enqueued_at: int
    due: int

    def start(self) -> "datetime | None":
        """The time it starts, never before its own; none if nothing is known to leave its queue."""
        per_second = self.rates.of(self.queue)
        if per_second is None:
            return None
        reached = self.enqueued_at + self.ahead * 1000 / per_second
        return utc(round(max(reached, self.due)))


def estimates(admission: "Admission", jobs: Sequence[NewJob], now: int) -> list[Estimate | None]:
    """One for each job; none for those that wait for others, or whose queue nobody counts."""
    made: list[Estimate | None] = []
    ahead: dict[str, int | None] = {}
    for place, job in enumerate(jobs):
        if job.queue not in ahead:
            ahead[job.queue] = admission.ahead_in(job.queue)
        before = ahead[job.queue]
        if before is None or job.after:
            made.append(None)
            continue
        due = now + job.delay_ms if job.scheduled_at is None else job.scheduled_at
        made.append(
            Estimate(admission.rates, job.queue, max(0, before - len(jobs) + place), now, due)
        )
    return made
