"""What the engine refuses to take on; each error writes its own sentence."""

from collections.abc import Mapping, Sequence

from penstock.model.errors import NotFound, PenstockError
from penstock.model.wording import counted


class ParentNotFound(PenstockError):
    """A job that should run after one the store does not hold."""

    def __init__(self, parent_id: str) -> None:
        self.parent_id = parent_id
        super().__init__(
            f"Job {parent_id}, which another should run after, is not in the store; "
            "enqueue it first, or it was pruned after its retention time."
        )


class DependencyCycle(PenstockError):
    """Jobs that would wait for each other for ever."""

    def __init__(self, path: Sequence[str], types: Mapping[str, str] | None = None) -> None:
        self.path = tuple(path)
        named = [f"{types[i]} {i}" if types and i in types else i for i in self.path]
        super().__init__(
            f"These jobs would wait for each other: {' -> '.join(named)}; "
            "take one of the dependencies out."
        )


class ForeignTenant(PenstockError):
    """Another tenant than one's own, named by a caller who is bound to one."""

    field = "tenant"

    def __init__(self, own: str, tenant: str) -> None:
        self.own = own
        self.tenant = tenant
        super().__init__(
            f"Tenant {tenant[:64]!r} is not yours: you belong to {own!r}; "
            "leave the tenant out, or name your own."
        )


class InvalidCondition(PenstockError):
    """A condition that is not an expression on the parent's result."""

    def __init__(self, condition: str, problem: str) -> None:
        self.condition = condition
        self.problem = problem
        super().__init__(
            f"Condition {condition[:200]!r} cannot be used: {problem}; write an expression on "
            "'result', such as result['total'] > 100."
        )


class InvalidSchedule(PenstockError):
    """A schedule whose times make no sense."""

    def __init__(self, field: str, value: object, expected: str) -> None:
        self.field = field
        self.value = str(value)[:120]
        self.expected = expected
        super().__init__(f"The schedule's {field} is {self.value!r}, but it must be {expected}.")


class ScheduleOver(InvalidSchedule):
    """A schedule whose times are all in the past, so that it would never run."""


class ScheduleNotFound(NotFound):
    """A schedule that the store does not know."""

    def __init__(self, name: str, known: Sequence[str] = ()) -> None:
        self.name = name
        self.known = tuple(known)
        listed = f"it has {', '.join(self.known)}" if self.known else "it has none"
        super().__init__(f"The store holds no schedule {name!r} ({listed}).")


class QueueFull(PenstockError):
    """A queue that takes no more jobs for now."""

    def __init__(self, queue: str, depth: int, limit: int, retry_after: float) -> None:
        self.queue = queue
        self.depth = depth
        self.limit = limit
        self.retry_after = retry_after
        super().__init__(
            f"Queue {queue!r} is full ({counted(depth, 'job')} queued, its limit is {limit:,}); "
            f"nothing was enqueued, come back in about {retry_after:g} s."
        )


class GroupNotFound(NotFound):
    """A group of dead letters that the store does not have."""

    def __init__(self, group: str, known: Sequence[str] = ()) -> None:
        self.group = group
        self.known = tuple(known)
        also = f"{group!r} may be {' or '.join(self.known)}" if self.known else "none begins so"
        super().__init__(
            f"No group of dead letters is {group!r} ({also}); see `penstock dead groups`."
        )


class CanariesUnproven(PenstockError):
    """A release whose canaries have failed again, or have not ended."""

    def __init__(self, group: str, failed: Sequence[str], unfinished: Sequence[str]) -> None:
        self.group = group
        self.failed = tuple(failed)
        self.unfinished = tuple(unfinished)
        told = []
        if self.failed:
            told.append(f"{len(self.failed)} of its canaries did not complete ({self.failed[0]})")
        if self.unfinished:
            told.append(f"{len(self.unfinished)} have not ended ({self.unfinished[0]})")
        super().__init__(
            f"Group {group} is not released: {' and '.join(told)}; "
            "wait, replay others, or release all the same with force (--force)."
        )


class AlertNotFound(NotFound):
    """An alert that no rule has raised yet."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"There is no alert {name!r}; see `penstock alerts ls --all`.")


class BreakerNotFound(NotFound):
    """A circuit breaker that the store does not know."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"There is no breaker {name!r}; see `penstock breakers ls`.")


class LimitNotFound(NotFound):
    """A limit that is to be taken away and is not there."""

    def __init__(self, scope: str, name: str, kind: str | None = None) -> None:
        self.scope = scope
        self.name = name
        self.kind = kind
        what = "limit" if kind is None else f"limit of {kind}"
        super().__init__(f"There is no {what} on {scope} {name!r}; see `penstock limits ls`.")


class TokenNotFound(NotFound):
    """A token that was never made."""

    def __init__(self, token_id: str) -> None:
        self.token_id = token_id[:64]
        super().__init__(f"There is no token {self.token_id!r}; see `penstock tokens ls`.")


class UserNotFound(NotFound):
    """A user whom nobody added, or somebody removed."""

    def __init__(self, name: str) -> None:
        self.name = name[:64]
        super().__init__(f"There is no user {self.name!r}; see `penstock users ls`.")


class AlertNotFiring(PenstockError):
    """An acknowledgement of an alert that does not fire."""

    def __init__(self, name: str, state: str) -> None:
        self.name = name
        self.state = state
        super().__init__(f"Alert {name!r} is {state}; only one that fires can be acknowledged.")


class ServerRefused(PenstockError):
    """A request that a server refused for a reason that only a request can have."""

    def __init__(self, server: str, status: int, detail: str, field: str | None = None) -> None:
        from penstock.model.redact import without_password

        self.server = without_password(server)
        self.status = status
        self.detail = detail
        self.field = field
        super().__init__(f"{self.server} answered {status}: {detail}")
