"""The model's limits and breakers: what may start, and what has."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from penstock.model.controls import COUNTED, EVERY, Breaker, Limit, LimitKind, LimitScope
from penstock.model.job import NewJob
from penstock.model.outcome import Buried, Completed, Failed, Settlement

Name = tuple[LimitScope, str]


class Limits:
    """Which limits there are, by what they are about."""

    def __init__(self) -> None:
        self.known: dict[tuple[LimitScope, str, LimitKind], Limit] = {}

    def set(self, limit: Limit) -> None:
        """Set a limit; what code declares leaves an operator's alone."""
        name = (limit.scope, limit.name, limit.kind)
        before = self.known.get(name)
        if before is None or limit.by_operator or not before.by_operator:
            self.known[name] = limit

    def drop(self, scope: LimitScope, name: str, kind: LimitKind) -> bool:
        """Take a limit away; whether there was one."""
        return self.known.pop((scope, name, kind), None) is not None

    def on(self, job: NewJob, kind: LimitKind) -> Iterator[tuple[Name, Limit]]:
        """The limits of a kind that a job is under, each with what it is about here."""
        for scope, name in names_of(job):
            limit = self.known.get((scope, name, kind)) or self.known.get((scope, EVERY, kind))
            if limit is not None:
                yield (scope, name), limit


@dataclass(slots=True)
class ModelBreaker:
    """A breaker as it should be."""

    breaker: Breaker
    failed: int = 0
    opened_at: int | None = None
    probe_id: str | None = None

    def lets_through(self, now: int, probing: bool) -> int | None:
        """How many more jobs pass; none means any number."""
        if self.opened_at is None:
            return None
        return int(now >= self.opened_at + self.breaker.cool_down_ms and not probing)

    def heed(self, settlement: Settlement, now: int) -> None:
        """An execution of a guarded type has ended."""
        probe = settlement.id == self.probe_id
        if self.opened_at is not None and not probe:
            return
        self.probe_id = None
        match settlement:
            case Failed() | Buried() if settlement.failure.error_class in COUNTED:
                self.failed += 1
                if probe or self.failed >= self.breaker.failures:
                    self.opened_at = now
            case Completed():
                self.reset()
            case Failed() | Buried() if probe:
                self.reset()
            case _:
                pass

    def reset(self) -> None:
        """All is well again."""
        self.failed, self.opened_at, self.probe_id = 0, None, None


@dataclass(slots=True)
class Starts:
    """When jobs were started under one name; the rate had a say in those from `since` on."""

    at: list[int] = field(default_factory=list)
    since: int = 0

    def add(self, now: int, bound: bool) -> None:
        """One more was started, under the rate or in spite of it."""
        if bound:
            self.at.append(now)
        else:
            self.at.insert(self.since, now)
            self.since += 1

    def within(self, interval_ms: int, now: int) -> int:
        """How many there were in the last while."""
        return sum(at > now - interval_ms for at in self.at)

    def bound(self, interval_ms: int, now: int) -> int:
        """How many of those the rate had a say in."""
        return sum(at > now - interval_ms for at in self.at[self.since :])


def names_of(job: NewJob) -> list[Name]:
    """All that a limit on this job may be about."""
    names = [
        (LimitScope.QUEUE, job.queue),
        (LimitScope.TYPE, job.type),
        (LimitScope.TENANT, job.tenant_id),
        (LimitScope.KEY, job.limit_key or ""),
    ]
    return [(scope, name) for scope, name in names if name]
