"""What the end of a job leaves behind: counters, and for dead letters a record for people."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from msgspec.json import encode

from penstock.model.failure import Failure
from penstock.model.histogram import step_of
from penstock.model.outcome import Buried, Completed, HandedBack, Settlement
from penstock.store.contract.metrics import (
    FINE_MS,
    LONGEST,
    OF_ALL_ONLY,
    attempts_name,
    of_tenant,
    step_at,
)
from penstock.store.relational.transaction import Transaction

_TERMINAL = frozenset({"completed", "cancelled", "dead"})


class Lane(NamedTuple):
    """What a job is counted under."""

    type: str
    queue: str
    tenant_id: str


class Counters:
    """Sums per type, queue and name."""

    __slots__ = ("_sums",)

    def __init__(self) -> None:
        self._sums: Counter[tuple[str, str, str]] = Counter()

    def add(self, lane: Lane, name: str, by: int = 1) -> None:
        """Count something, of all jobs and of those of their tenant."""
        for counter in _counters(lane, name) if by else ():
            self._sums[lane.type, lane.queue, counter] += by

    def end(self, lane: Lane, name: str, attempts: int) -> None:
        """Count a job that ended otherwise than by its own execution."""
        self.add(lane, name)
        self.add(lane, attempts_name(attempts))

    def end_all(self, rows: Iterable[tuple[str, str, str, str, int]], name: str) -> list[str]:
        """Count jobs that ended without an execution: id, lane, attempts; return their ids."""
        ids = []
        for job_id, type_, queue, tenant_id, attempts in rows:
            self.end(Lane(type_, queue, tenant_id), name, attempts)
            ids.append(job_id)
        return ids

    def ended(self, settlements: Sequence[Settlement], name: str) -> None:
        """Count executions that ended alike, with their durations and waits."""
        for lane, alike in _by_lane(settlements).items():
            self.add(lane, name, len(alike))
            self.add(lane, "started", sum(map(_ran, alike)))
            self.add(lane, "duration_sum", sum([s.duration_ms for s in alike]))
            self.add(lane, "wait_sum", sum([s.wait_ms for s in alike]))
            self._longest(lane, max([s.duration_ms for s in alike]))
            for ms, count in Counter([s.duration_ms for s in alike]).items():
                self.add(lane, f"duration:{step_of(ms)}", count)
            for ms, count in Counter([s.wait_ms for s in alike]).items():
                self.add(lane, f"wait:{step_of(ms)}", count)
            if name in _TERMINAL:
                for attempts, count in Counter(map(_attempts, alike)).items():
                    self.add(lane, attempts_name(attempts), count)

    def document(self) -> str:
        """The sums, as `[[type, queue, name, by], …]`."""
        return encode([(*name, by) for name, by in self._sums.items()]).decode()

    def write(self, tx: Transaction) -> None:
        """Add the sums to the current step of ten seconds."""
        if not self._sums:
            return
        bucket = step_at(tx.now, FINE_MS)
        tx.run("add_metrics", {"step": FINE_MS, "bucket": bucket, "sums": self.document()})

    def _longest(self, lane: Lane, duration_ms: int) -> None:
        for counter in _counters(lane, LONGEST):
            place = lane.type, lane.queue, counter
            self._sums[place] = max(self._sums[place], duration_ms)


def _counters(lane: Lane, name: str) -> tuple[str, ...]:
    if not lane.tenant_id or name.startswith(OF_ALL_ONLY):
        return (name,)
    return name, of_tenant(name, lane.tenant_id)


def _by_lane(settlements: Sequence[Settlement]) -> dict[Lane, list[Settlement]]:
    lanes: dict[Lane, list[Settlement]] = {}
    for each in settlements:
        lanes.setdefault(Lane(each.type, each.queue, each.tenant_id), []).append(each)
    return lanes


def _ran(settlement: Settlement) -> bool:
    return not isinstance(settlement, HandedBack) or settlement.started


def _attempts(settlement: Settlement) -> int:
    """How many the job had taken when this execution ended it."""
    return settlement.attempts + isinstance(settlement, Completed | Buried)


def keep_dead_letters(tx: Transaction, ids: Sequence[str], failure: Failure) -> None:
    """Snapshot jobs that ended alike, and their executions."""
    row: dict[str, Any] = {
        "ids": tx.listed(ids),
        "reason": str(failure.error_class),
        "error": failure.message,
        "code": failure.code,
        "fingerprint": failure.fingerprint,
        "now": tx.now,
    }
    tx.run("insert_dead_letter", row)


def release_keys(tx: Transaction, ids: list[str]) -> None:
    """Let go of the keys that a job holds only until it is done."""
    if ids and tx.value("any_key") is not None:
        tx.run("release_keys_at_end", (tx.listed(ids),))
