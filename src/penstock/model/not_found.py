"""What somebody named and is not there."""

from collections.abc import Sequence

from penstock.model.errors import PenstockError


class NotFound(PenstockError):
    """Something that was named and is not there."""


class JobNotFound(NotFound):
    """A job id that the store does not know."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        super().__init__(
            f"The store holds no job {job_id}; check the id and the store, "
            "or it was pruned after its retention time."
        )


class AmbiguousId(NotFound):
    """The beginning of an id that several jobs share."""

    def __init__(self, prefix: str, ids: Sequence[str]) -> None:
        self.prefix = prefix
        self.ids = tuple(ids)
        super().__init__(
            f"Several jobs have an id that begins with {prefix!r}, such as {', '.join(self.ids)}; "
            "type more of it."
        )


class ScheduleNotFound(NotFound):
    """A schedule that the store does not know."""

    def __init__(self, name: str, known: Sequence[str] = ()) -> None:
        self.name = name
        self.known = tuple(known)
        listed = f"it has {', '.join(self.known)}" if self.known else "it has none"
        super().__init__(f"The store holds no schedule {name!r} ({listed}).")


class GroupNotFound(NotFound):
    """A group of dead letters that the store does not have."""

    def __init__(self, group: str, known: Sequence[str] = ()) -> None:
        self.group = group
        self.known = tuple(known)
        also = f"{group!r} may be {' or '.join(self.known)}" if self.known else "none begins so"
        super().__init__(
            f"No group of dead letters is {group!r} ({also}); see `penstock dead groups`."
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


class FollowerNotFound(NotFound):
    """A follower of jobs that the store does not know."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"There is no follower {name!r}; see `penstock followers ls`.")


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
