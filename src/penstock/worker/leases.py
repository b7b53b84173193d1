"""The leases a worker holds, renewed from a thread that a blocked loop cannot stop."""

import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog

from penstock.config import Settings
from penstock.model.clock import Clock
from penstock.model.job import Lease
from penstock.store.contract import Beat, Held, Renewal, Store
from penstock.worker.running import Running

if TYPE_CHECKING:
    from penstock.app.job_type import JobType

TICK_SECONDS = 0.1


def own_leases(types: "Mapping[str, JobType[..., ..., Any]]") -> dict[str, int]:
    """The lease lengths that types ask for, in milliseconds."""
    return {
        name: int(type_.lease * 1000) for name, type_ in types.items() if type_.lease is not None
    }


class ToRenew(NamedTuple):
    """What a worker wants to keep: the leases it knows, and any it was granted unheard."""

    leases: list[Held]
    unheard_ms: int | None
    given_up: Collection[str]


class Holdings:
    """Every execution under way. The event loop fills it; the heartbeat's thread reads it."""

    def __init__(self, settings: Settings, clock: Clock, own_lease_ms: Mapping[str, int]) -> None:
        self.running: dict[str, Running] = {}
        self.on_blocked: Callable[[], None] | None = None
        self._clock = clock
        self._own_lease_ms = own_lease_ms
        self._lease_ms = int(settings.lease * 1000)
        self._grace_ms = int(settings.timeout_grace * 1000)
        self._deaf_ms = int(max(2 * TICK_SECONDS, min(1, settings.renew_interval)) * 1000)
        self._given_up: set[str] = set()
        self._ticked_at = clock.monotonic()
        self._blocked_beats = 0

    def add(self, running: Running) -> Running | None:
        """Hold an execution; an earlier one of the same job, whose lease was taken away, if any."""
        earlier = self.running.get(running.lease.id)
        self.running[running.lease.id] = running
        self._given_up.discard(running.lease.id)
        return earlier

    @property
    def given_up(self) -> Collection[str]:
        """Jobs whose leases are left to lapse, although something of them may still run."""
        return self._given_up

    def end(self, running: Running, *, give_up: bool = False) -> bool:
        """Let go of an execution; false when it was let go of before."""
        if self.running.get(running.lease.id) is not running:
            return False
        del self.running[running.lease.id]
        if give_up:
            self._given_up.add(running.lease.id)
        return True

    def tick(self) -> int:
        """Note that the event loop is alive; the time."""
        self._ticked_at = self._clock.monotonic()
        return self._ticked_at

    def deaf_seconds(self) -> float:
        """How long the event loop has been blocked by no handler that is within its time."""
        now = self._clock.monotonic()
        if any(not self.is_stuck(running, now) for running in list(self.running.values())):
            return 0.0
        return (now - self._ticked_at) / 1000

    def is_stuck(self, running: Running, now: int) -> bool:
        """Whether a handler ignored its end for longer than its grace."""
        return running.deadline is not None and now >= running.deadline + self._grace_ms

    def to_renew(self, waiting: Collection[Lease]) -> ToRenew:
        """Everything held, started or not, except what is past its time and grace.

        While the event loop is blocked, also what a claim granted and nobody has heard of yet. A
        handler that blocks it past its own time takes nothing with it: then nothing is kept.
        """
        now = self._clock.monotonic()
        held = list(self.running.values())
        in_time = [running for running in held if not self.is_stuck(running, now)]
        overdue = {running.lease.id for running in held if self.is_stuck(running, now)}
        deaf = now - self._ticked_at > self._deaf_ms
        blocked = bool(deaf and held and not in_time)
        self._note_blocked(blocked)
        leases = [running.lease for running in in_time] + ([] if blocked else list(waiting))
        return ToRenew(
            [Held(lease.id, lease.fence, self._length(lease)) for lease in leases],
            self._lease_ms if deaf and not blocked else None,
            overdue | self._given_up,
        )

    def _length(self, lease: Lease) -> int:
        return self._own_lease_ms.get(lease.type, self._lease_ms)

    def _note_blocked(self, blocked: bool) -> None:
        """Twice in a row is not a process that was merely frozen for a while."""
        self._blocked_beats = self._blocked_beats + 1 if blocked else 0
        if self._blocked_beats >= 2 and self.on_blocked is not None:
            self.on_blocked()


log = structlog.get_logger("penstock.worker")

RETRY_SECONDS = 1.0


class Heartbeat:
    """Renews what the worker holds and refreshes its row."""

    def __init__(
        self,
        store: Store,
        owner: str,
        *,
        held: Callable[[], ToRenew],
        beat: Callable[[], Beat],
        heard: Callable[[Renewal, Sequence[Held]], None],
        renew_seconds: float,
        beat_seconds: float,
    ) -> None:
        self._store = store
        self._owner = owner
        self._held = held
        self._beat = beat
        self._heard = heard
        self._renew_seconds = renew_seconds
        self._beat_seconds = beat_seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-heartbeat", daemon=True)
        self._warned_at = 0.0

    def start(self) -> None:
        """Write the worker's row, then keep beating."""
        self._store.workers.beat(self._beat())
        self._thread.start()

    def refresh(self) -> None:
        """Write the worker's row now, because it has changed."""
        self._quietly(lambda: self._store.workers.beat(self._beat()))

    def stop(self) -> None:
        """Stop beating; leases still held run out by themselves."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()

    def _run(self) -> None:
        step = min(self._renew_seconds, self._beat_seconds)
        # A store that comes back finds its workers at once, before anybody may take their leases.
        soon = min(step, RETRY_SECONDS, self._renew_seconds / 8)
        renewed = beaten = time.monotonic()
        pause = step
        while not self._stopping.wait(pause):
            now = time.monotonic()
            pause = step
            if now - renewed >= self._renew_seconds - step / 2:
                if self._quietly(self._renew):
                    renewed = now
                else:
                    pause = soon
            if now - beaten >= self._beat_seconds - step / 2:
                self.refresh()
                beaten = now

    def _renew(self) -> None:
        held = self._held()
        if held.leases or held.unheard_ms is not None:
            renewal = self._store.leases.renew(
                self._owner, held.leases, unheard_ms=held.unheard_ms, given_up=held.given_up
            )
            self._heard(renewal, held.leases)

    def _quietly(self, action: Callable[[], None]) -> bool:
        """A store that is away for a while must not end the heartbeat; say so once a minute."""
        try:
            action()
            return True
        except Exception as error:
            if time.monotonic() - self._warned_at > 60:
                self._warned_at = time.monotonic()
                log.warning("heartbeat_failed", worker_id=self._owner, error=str(error))
            return False
