"""As many worker processes as there is work for: the load, the decision, and who carries it out."""

import asyncio
import os
import signal
from collections.abc import Collection, Sequence
from contextlib import suppress
from hashlib import sha256

import structlog
from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import replace

from penstock.app.penstock import Penstock
from penstock.model.store_errors import StoreError
from penstock.model.wording import counted, span
from penstock.store.contract import QueueDepth, Store, Window, WorkerInfo
from penstock.worker import respawn
from penstock.worker.process import WorkerSpec
from penstock.worker.supervisor import Supervisor
from penstock.worker.worker import new_owner

WINDOW_MS = 300_000


class Load(Struct, frozen=True, kw_only=True):
    """The figures that decide how many workers there should be."""

    queued: int
    in_progress: int
    wait_seconds: float
    cpu_percent: float
    workers: int


async def measure(
    store: Store, *, queues: Collection[str] | None = None, owners: Collection[str] | None = None
) -> Load:
    """The load on an installation, or on some queues; busy are all workers, or those named."""
    return load_of(
        await store.metrics.depths(),
        await store.metrics.window(WINDOW_MS),
        await store.workers.list(),
        queues=queues,
        owners=owners,
    )


def load_of(
    depths: Sequence[QueueDepth],
    windows: Sequence[Window],
    workers: Sequence[WorkerInfo],
    *,
    queues: Collection[str] | None = None,
    owners: Collection[str] | None = None,
) -> Load:
    """The same out of what a store said."""
    ours = [each for each in workers if each.alive and _serves(each, queues)]
    busy = [each.cpu_percent for each in ours if owners is None or each.owner in owners]
    about = [depth for depth in depths if queues is None or depth.queue in queues]
    return Load(
        queued=sum(depth.queued for depth in about),
        in_progress=sum(depth.in_progress for depth in about),
        wait_seconds=round(_median_wait_ms(windows, queues) / 1000, 3),
        cpu_percent=round(sum(busy) / len(busy), 1) if busy else 0.0,
        workers=len(ours),
    )


def _median_wait_ms(windows: Sequence[Window], queues: Collection[str] | None) -> float:
    """How long jobs that started lately had waited; the slowest where several queues are asked."""
    rows = windows[:1] if queues is None else [row for row in windows[1:] if row.queue in queues]
    return max((row.wait_p50_ms or 0.0 for row in rows), default=0.0)


def _serves(worker: WorkerInfo, queues: Collection[str] | None) -> bool:
    return queues is None or worker.queues is None or not set(worker.queues).isdisjoint(queues)


class Policy(Struct, frozen=True, kw_only=True):
    """The bounds and the triggers; times are in seconds.

    Between `down_depth` and `up_depth` nothing changes. After a change none follows before
    `cool_down` is over, and workers are stopped only when it was calm for `calm`.
    """

    least: int = 1
    most: int = 4
    up_depth: int = 100
    down_depth: int = 10
    up_wait: float = 300
    up_cpu: float = 80
    cool_down: float = 60
    calm: float = 120


class Memory(Struct, frozen=True, kw_only=True):
    """What the next decision has to know of the last ones, in milliseconds of one clock."""

    changed_at: int | None = None
    calm_since: int | None = None


class Decision(Struct, frozen=True, kw_only=True):
    """How many workers there should be; without a reason, as many as there are."""

    workers: int
    reason: str
    memory: Memory


def decide(load: Load, workers: int, memory: Memory, policy: Policy, now: int) -> Decision:
    """What to do about a load with so many workers."""
    bounded = min(max(workers, policy.least), policy.most)
    if bounded != workers:
        side, bound = ("least", policy.least) if bounded > workers else ("most", policy.most)
        reason = f"{counted(workers, 'worker')} where there should be at {side} {bound}"
        return _change(bounded, reason, memory, now)
    too_much = _too_much(load, workers, policy)
    cooling = _within(memory.changed_at, policy.cool_down, now)
    if too_much:
        busy = replace(memory, calm_since=None)
        if cooling or workers >= policy.most:
            return Decision(workers=workers, reason="", memory=busy)
        return _change(workers + 1, too_much, busy, now)
    calm = _calm(load, workers, policy)
    since = (memory.calm_since if memory.calm_since is not None else now) if calm else None
    memory = replace(memory, calm_since=since)
    if not calm or cooling or _within(since, policy.calm, now):
        return Decision(workers=workers, reason="", memory=memory)
    return _change(workers - 1, calm, memory, now)


def _too_much(load: Load, workers: int, policy: Policy) -> str:
    """Why there should be more, if there should."""
    if not workers and load.queued:
        return f"{load.queued} queued and nobody works"
    if load.queued > policy.up_depth:
        return f"{load.queued} queued, more than {policy.up_depth}"
    if load.queued and load.wait_seconds > policy.up_wait:
        waited, most = (span(seconds * 1000) for seconds in (load.wait_seconds, policy.up_wait))
        return f"jobs waited {waited}, longer than {most}"
    if load.cpu_percent > policy.up_cpu:
        return f"workers use {load.cpu_percent:g} % of a core, more than {policy.up_cpu:g} %"
    return ""


def _calm(load: Load, workers: int, policy: Policy) -> str:
    """Why one could be spared, if it could; those who stay must not be too busy then."""
    if workers <= policy.least or load.queued >= policy.down_depth:
        return ""
    left = workers - 1
    if not left:
        return "" if load.queued or load.in_progress else "nothing is queued and nothing runs"
    if load.cpu_percent * workers / left >= policy.up_cpu:
        return ""
    return f"{load.queued} queued, fewer than {policy.down_depth}"


def _change(workers: int, reason: str, memory: Memory, now: int) -> Decision:
    changed = replace(memory, changed_at=now, calm_since=None)
    return Decision(workers=workers, reason=reason, memory=changed)


def _within(since: int | None, seconds: float, now: int) -> bool:
    return since is not None and now - since < seconds * 1000


log = structlog.get_logger("penstock.autoscale")

LOOK_SECONDS = 5.0
TERM_SECONDS = 15.0


class Crew(Supervisor):
    """A supervisor that starts and stops workers; those it stops finish what they run.

    Of several with the same work on one machine one acts, or they would add up; the others stand
    by.
    """

    def __init__(self, spec: WorkerSpec, policy: Policy, interval: float = LOOK_SECONDS) -> None:
        super().__init__(spec, policy.most)
        self._policy = policy
        self._interval = interval
        self._memory = Memory()
        self._kept: dict[int, asyncio.Task[None]] = {}
        self._owners: dict[int, str] = {}
        self._leaving: set[int] = set()
        self._dismissed: set[str] = set()
        self._owner = new_owner()
        self._term_ms = int(max(TERM_SECONDS, 3 * interval) * 1000)
        self._stands_by = False

    @property
    def workers(self) -> int:
        """How many are meant to go on."""
        return len(self._kept.keys() - self._leaving)

    async def _supervise(self, app: Penstock) -> None:
        while not self._stopping.is_set():
            await self._look(app)
            await respawn.until(self._stopping, self._interval)
        await asyncio.gather(*self._kept.values())
        with suppress(StoreError):
            await app.store.upkeep.resign(role_of(self._spec), self._owner)

    async def _look(self, app: Penstock) -> None:
        self._forget_gone()
        if self._exit_code:
            self.stop()  # a worker that cannot start would not start the next time either
            return
        try:
            if not await self._leads(app):
                self._shrink_to(0)
                return
            owners = [owner for index, owner in self._owners.items() if index not in self._leaving]
            load = await measure(app.store, queues=self._spec.queues, owners=owners)
        except StoreError as error:
            log.warning("autoscale_blind", error=str(error))
            return
        now = app.store.clock.monotonic()
        decision = decide(load, self.workers, self._memory, self._policy, now)
        self._memory = decision.memory
        if decision.reason:
            _say(load, decision, self.workers)
        self._grow_to(decision.workers, app)
        self._shrink_to(decision.workers)

    async def _leads(self, app: Penstock) -> bool:
        """Whether this crew is the one that acts; said when that changes."""
        leads = await app.store.upkeep.lead(role_of(self._spec), self._owner, self._term_ms)
        if self._stands_by is leads:
            self._stands_by = not leads
            log.info("autoscale_acts" if leads else "autoscale_stands_by", worker_id=self._owner)
        return leads

    def _grow_to(self, workers: int, app: Penstock) -> None:
        """Start some; those that still finish count, so that there are never too many."""
        for index in range(self._policy.most):
            if self.workers >= workers:
                return
            if index not in self._kept:
                self._kept[index] = asyncio.create_task(self._keep_alive(index, app.store))

    def _shrink_to(self, workers: int) -> None:
        for index in sorted(self._kept.keys() - self._leaving, reverse=True):
            if self.workers <= workers:
                break
            self._leaving.add(index)
        for index in self._leaving:
            self._dismiss(self._owners.get(index))

    def _dismiss(self, owner: str | None) -> None:
        """Let a worker drain; asked once, for a second signal would end it at once."""
        child = self._children.get(owner or "")
        if owner is not None and child is not None and owner not in self._dismissed:
            self._dismissed.add(owner)
            if child.returncode is None:
                respawn.tell(child, signal.SIGTERM)

    def _forget_gone(self) -> None:
        for index in [index for index, task in self._kept.items() if task.done()]:
            del self._kept[index]
            self._leaving.discard(index)
        self._dismissed &= self._children.keys()

    def _wants(self, index: int) -> bool:
        return super()._wants(index) and index not in self._leaving

    async def _run_child(self, index: int, owner: str) -> int:
        self._owners[index] = owner
        try:
            return await super()._run_child(index, owner)
        finally:
            del self._owners[index]


def role_of(spec: WorkerSpec) -> str:
    """What only one crew does at a time: these workers, under this name, on this machine."""
    work = encode([spec.target, spec.name, spec.queues, spec.types])
    return f"autoscale:{os.uname().nodename}:{sha256(work).hexdigest()[:16]}"


def _say(load: Load, decision: Decision, workers: int) -> None:
    log.info(
        "autoscale_up" if decision.workers > workers else "autoscale_down",
        workers=decision.workers,
        before=workers,
        reason=decision.reason,
        queued=load.queued,
        wait_seconds=load.wait_seconds,
        cpu_percent=load.cpu_percent,
    )
