"""What an application declares beside its job types, put into the store when a worker starts."""

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, TypeVar

from penstock.app.job_type import JobType
from penstock.app.schedules import check_template, put, template_job, times_of
from penstock.model.controls import (
    DEFAULT_COOL_DOWN_MS,
    DEFAULT_FAILURES,
    EVERY,
    Breaker,
    Limit,
    LimitKind,
    LimitScope,
    check_limits,
    parse_rate,
)
from penstock.model.errors import InvalidOption, ScheduleOver
from penstock.model.options import MAX_TEXT, check_name, check_seconds, check_text

if TYPE_CHECKING:
    from penstock.app.blueprint import Registry
    from penstock.app.penstock import Penstock

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
        self.check(limits)
        self._limits.update({(one.scope, one.name, one.kind): one for one in limits})

    @property
    def all(self) -> list[Limit]:
        """Every limit that is declared."""
        return list(self._limits.values())

    def check(self, limits: list[Limit]) -> None:
        """Refuse another limit in the place of one that is declared."""
        for limit in limits:
            known = self._limits.get((limit.scope, limit.name, limit.kind), limit)
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


MAX_FAILURES = 1_000_000


class DeclaredBreakers:
    """All breakers of an application; a job type may name one before it is described."""

    def __init__(self) -> None:
        self._described: dict[str, tuple[int, int]] = {}
        self._guarded: dict[str, str] = {}

    def describe(self, name: str, failures: Any, cool_down: Any) -> None:
        """Say after how many failures a breaker opens, and for how many seconds."""
        check_name("breaker", name)
        whole = isinstance(failures, int) and not isinstance(failures, bool)
        if not whole or not 0 < failures <= MAX_FAILURES:
            raise InvalidOption("failures", failures, "a whole number, 1 or more")
        check_seconds("cool_down", cool_down)
        described = {name: (failures, max(1, int(cool_down * 1000)))}
        self._check(described)
        self._described.update(described)

    def check(self, other: "DeclaredBreakers") -> None:
        """Refuse breakers that are described otherwise already."""
        self._check(other._described)

    def include(self, other: "DeclaredBreakers") -> None:
        """Take over what others declare, which was checked before."""
        self._described.update(other._described)
        self._guarded.update(other._guarded)

    def _check(self, described: "Mapping[str, tuple[int, int]]") -> None:
        for name, chosen in described.items():
            if self._described.get(name, chosen) != chosen:
                raise InvalidOption("breaker", name, "described once")

    def guard(self, name: str, types: "Sequence[str]") -> None:
        """Have a breaker hold back jobs of these types."""
        check_name("breaker", name)
        self._guarded.update(dict.fromkeys(types, name))

    async def declare(self, app: "Penstock") -> None:
        """Put them into the store; for the types of this application its word is the last."""
        names = {*self._described, *self._guarded.values()}
        controls = app.store.controls
        if names or await controls.breakers():
            wanted = [self._breaker(name) for name in sorted(names)]
            await controls.define_breakers(wanted, known_types=sorted(app.types))

    def _breaker(self, name: str) -> Breaker:
        failures, cool_down_ms = self._described.get(name, (DEFAULT_FAILURES, DEFAULT_COOL_DOWN_MS))
        types = tuple(type_ for type_, guard in self._guarded.items() if guard == name)
        return Breaker(name=name, types=types, failures=failures, cool_down_ms=cool_down_ms)


T = TypeVar("T", bound="JobType[..., ..., Any]")


class Declaration(Protocol):
    """Something that should be in the store."""

    async def declare(self, app: "Penstock") -> None:
        """Put it there, unless an operator decided otherwise since."""
        ...


async def declare(app: "Penstock") -> None:
    """Put everything into the store that the application declares."""
    for declaration in list(app.declarations):
        await declaration.declare(app)


class DeclaredSchedule:
    """What `@app.scheduled(...)` says of a job type."""

    def __init__(
        self,
        type_: JobType[..., ..., Any],
        name: str | None,
        arguments: Mapping[str, Any] | None,
        times: Mapping[str, Any],
    ) -> None:
        if not isinstance(type_, JobType):
            raise InvalidOption(
                "handler", type_, "a job type: write @app.scheduled(...) above @app.job"
            )
        self.type = type_
        self.name = type_.name if name is None else name
        check_name("name", self.name)
        self._arguments = arguments
        self._times = times_of(times)

    def of(self, type_: JobType[..., ..., Any]) -> "DeclaredSchedule":
        """Return the same schedule of another job type."""
        other = copy(self)
        other.type = type_
        return other

    async def declare(self, app: "Penstock") -> None:
        """Put the schedule into the store; one whose time is over is left out."""
        job = template_job(self.type, self._arguments)
        check_template(self.type, self.name, job, self._times)
        try:
            await put(app.store, self.name, job, self._times, by="declaration")
        except ScheduleOver as error:
            import structlog

            log = structlog.get_logger("penstock.app")
            log.info("schedule_over", schedule=self.name, reason=str(error))


def scheduled(
    registry: "Registry",
    name: str | None,
    arguments: Mapping[str, Any] | None,
    times: Mapping[str, Any],
) -> Callable[[T], T]:
    """The decorator that declares a schedule of the job type it stands above."""

    def declared(type_: T) -> T:
        schedule = DeclaredSchedule(type_, name, arguments, times)
        replaced = replaced_by(schedule, registry.declarations)
        add_schedule(schedule, replaced, registry.declarations)
        return type_

    return declared


def schedules_in(declarations: "Sequence[Declaration]") -> list[DeclaredSchedule]:
    """Return the schedules among all that is declared."""
    return [one for one in declarations if isinstance(one, DeclaredSchedule)]


def replaced_by(
    schedule: DeclaredSchedule, declarations: "Sequence[Declaration]"
) -> DeclaredSchedule | None:
    """Find the schedule that a new one replaces, as a module does that is loaded again."""
    for known in schedules_in(declarations):
        if known.name == schedule.name:
            if known.type is schedule.type or known.type.name != schedule.type.name:
                raise InvalidOption("name", schedule.name, "one that no other schedule has")
            return known
    return None


def add_schedule(
    schedule: DeclaredSchedule,
    replaced: DeclaredSchedule | None,
    declarations: list[Declaration],
) -> None:
    """Declare a schedule in the place of another."""
    if replaced is not None:
        declarations.remove(replaced)
    declarations.append(schedule)
