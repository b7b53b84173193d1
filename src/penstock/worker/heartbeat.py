"""Renewing leases from a thread of its own, which a blocked event loop cannot stop."""

import threading
import time
from collections.abc import Callable, Sequence

import structlog

from penstock.store.contract import Beat, Held, Renewal, Store
from penstock.worker.holdings import ToRenew

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
