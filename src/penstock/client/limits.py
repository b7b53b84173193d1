"""Limits as code and operators write them: `limit(key="openai", concurrency=3, rate="60/min")`."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict

from penstock.client.lookups import check_text
from penstock.client.options import check_name
from penstock.model.controls import EVERY, Limit, LimitKind, LimitScope, check_limits, parse_rate
from penstock.model.errors import InvalidOption
from penstock.model.job import MAX_TEXT

if TYPE_CHECKING:
    from penstock.client.app import Penstock
    from penstock.client.job_type import JobType

_SCOPES = tuple(scope.value for scope in LimitScope)
_KINDS = tuple(kind.value for kind in LimitKind)


class Subject(TypedDict, total=False):
    """What a limit is about: exactly one of these; `*` is each one for itself."""

    type: "str | JobType[..., ..., Any]"
    key: str
    tenant: str
    queue: str


class LimitFields(Subject, total=False):
    """A limit in keyword arguments; one call may set several kinds."""

    concurrency: int | None
    rate: str | None
    depth: int | None


def limits_of(fields: Mapping[str, Any], *, by_operator: bool) -> list[Limit]:
    """The limits that keyword arguments describe, checked."""
    given = {name: value for name, value in fields.items() if value is not None}
    scope, name = subject_of({n: v for n, v in given.items() if n not in _KINDS})
    kinds = [kind for kind in LimitKind if kind in given]
    if not kinds:
        raise InvalidOption("limit", name, f"given with what it bounds: one of {', '.join(_KINDS)}")
    if LimitKind.DEPTH in kinds and scope is not LimitScope.QUEUE:
        raise InvalidOption("depth", given["depth"], "a limit of a queue: limit(queue=…, depth=…)")
    found = [_limit(scope, name, kind, given[kind], by_operator) for kind in kinds]
    check_limits(found)
    return found


def subject_of(fields: Mapping[str, Any]) -> tuple[LimitScope, str]:
    """What a limit is about, from keyword arguments of which exactly one may be given."""
    given = {name: value for name, value in fields.items() if value is not None}
    if len(given) != 1 or next(iter(given)) not in _SCOPES:
        named = ", ".join(given) or "nothing"
        raise InvalidOption("limit", named, f"about exactly one of: {', '.join(_SCOPES)}")
    ((scope, value),) = given.items()
    return LimitScope(scope), named_as(scope, value)


def named_as(option: str, value: Any) -> str:
    """A name out of a keyword argument; a job type or a handle stands for its own."""
    known = getattr(value, "name", None) or getattr(value, "id", None)
    name: object = value if isinstance(value, str) else known
    if option in ("type", "queue"):
        if name != EVERY:
            check_name(option, name)
    elif not isinstance(name, str) or not 0 < len(name) <= MAX_TEXT:
        raise InvalidOption(option, value, f"a text of 1 to {MAX_TEXT} characters")
    return check_text(option, name)


def _limit(scope: LimitScope, name: str, kind: LimitKind, value: Any, by_operator: bool) -> Limit:
    capacity, interval_ms = parse_rate(value) if kind is LimitKind.RATE else (value, None)
    return Limit(
        scope=scope,
        name=name,
        kind=kind,
        capacity=capacity,
        interval_ms=interval_ms,
        by_operator=by_operator,
    )


class DeclaredLimits:
    """The limits that code declares."""

    def __init__(self) -> None:
        self._limits: dict[tuple[LimitScope, str, LimitKind], Limit] = {}

    def add(self, limits: list[Limit]) -> None:
        """Declare limits; the same one may be declared again, another one in its place not."""
        for limit in limits:
            known = self._limits.setdefault((limit.scope, limit.name, limit.kind), limit)
            if known != limit:
                raise InvalidOption(
                    limit.kind.value,
                    limit.capacity,
                    f"declared once for {limit.scope} {limit.name!r} ({known.capacity} is)",
                )

    async def declare(self, app: "Penstock") -> None:
        """Put them into the store; an operator's stay as they are."""
        if self._limits:
            await app.store.controls.set_limits(list(self._limits.values()))
