"""Where handlers are registered: in an application, or in a blueprint that one includes."""

import inspect
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, Unpack, overload

from penstock.app.context import Context
from penstock.app.declare import (
    Declaration,
    DeclaredBreakers,
    DeclaredLimits,
    LimitFields,
    T,
    add_schedule,
    limits_of,
    replaced_by,
    scheduled,
    schedules_in,
)
from penstock.app.job_type import Decorator, JobType
from penstock.app.options import OptionFields, Registration, RunIn, with_options
from penstock.app.schedules import TimeFields
from penstock.model.errors import NOT_SHOWN, InvalidOption, UnknownOption, UnknownType
from penstock.model.job import NewJob
from penstock.model.retry import Classifier, ErrorClass

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

P = ParamSpec("P")
R = TypeVar("R")


class Registry:
    """Job types, and what is declared beside them: schedules, limits and breakers."""

    def __init__(self) -> None:
        self.limits, self.breakers = DeclaredLimits(), DeclaredBreakers()
        self.declarations: list[Declaration] = [self.limits, self.breakers]
        self._types: dict[str, JobType[..., ..., Any]] = {}

    @property
    def home(self) -> "Penstock | None":
        """The application that calls of its types are enqueued by; None if it is none itself."""
        return None

    def default_options(self) -> NewJob:
        """Return a call with what holds for a type whose author says nothing."""
        return NewJob(id="", type="")

    def checked(self, options: NewJob) -> NewJob:
        """Refuse options that are not allowed here."""
        return options

    @overload
    def job(
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> JobType[P, Concatenate[Context, P], R]: ...
    @overload
    def job(
        self, function: Callable[Concatenate[Context, P], R], /
    ) -> JobType[P, Concatenate[Context, P], R]: ...
    @overload
    def job(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> JobType[P, P, R]: ...
    @overload
    def job(self, function: Callable[P, R], /) -> JobType[P, P, R]: ...
    @overload
    def job(self, /, **registration: Unpack[Registration]) -> Decorator: ...

    def job(self, function: Any = None, /, **registration: Any) -> Any:
        """Register a handler: `@app.job` or `@app.job(queue="mail", max_retries=5)`."""
        if function is not None:
            return self._make_type(function, **registration)
        return lambda handler: self._make_type(handler, **registration)

    def _make_type(
        self,
        handler: Callable[..., Any],
        *,
        name: str | None = None,
        aliases: Sequence[str] = (),
        run_in: RunIn | None = None,
        lease: float | None = None,
        classify: Sequence[Classifier] = (),
        budgets: Mapping[ErrorClass, int] | None = None,
        retry_cap: float | None = None,
        concurrency: int | None = None,
        rate: str | None = None,
        per_worker: int | None = None,
        rate_per_worker: str | None = None,
        breaker: str | None = None,
        critical: bool = False,
        **options: Unpack[OptionFields],
    ) -> JobType[..., ..., Any]:
        if not inspect.isroutine(handler):
            raise InvalidOption("handler", handler, "a function or a coroutine function")
        if "after" in options:
            raise InvalidOption("after", NOT_SHOWN, "an option of a call: task.options(after=…)")
        for option in options:
            if option not in Registration.__optional_keys__:
                raise UnknownOption(option, sorted(Registration.__optional_keys__))
        made: JobType[..., ..., Any] = JobType(
            self.home,
            handler,
            name=name or handler.__name__,
            aliases=aliases,
            options=self.checked(with_options(self.default_options(), **options)),
            given=options,
            run_in=run_in,
            lease=lease,
            classify=classify,
            budgets=budgets or {},
            retry_cap=retry_cap,
            critical=critical,
            per_worker=per_worker,
            rate_per_worker=rate_per_worker,
        )
        if concurrency is not None or rate is not None:
            for each in made.names:
                self.limit(type=each, concurrency=concurrency, rate=rate)
        if breaker is not None:
            self.breakers.guard(breaker, made.names)
        self.register(made)
        return made

    def limit(self, **limit: Unpack[LimitFields]) -> None:
        """Declare a limit: `app.limit(key="openai", concurrency=3, rate="60/min")`."""
        self.limits.add(limits_of(limit, by_operator=False))

    def breaker(self, name: str, *, failures: int = 5, cool_down: float = 30) -> None:
        """Describe the breaker that `@app.job(breaker=name)` names."""
        self.breakers.describe(name, failures, cool_down)

    def find_type(self, name: str) -> JobType[..., ..., Any]:
        """Return the type registered under a name or an alias."""
        try:
            return self._types[name]
        except (KeyError, TypeError):  # what cannot be hashed names nothing either
            raise UnknownType(name, sorted({t.name for t in self._types.values()})) from None

    @property
    def types(self) -> dict[str, JobType[..., ..., Any]]:
        """Every registered name and alias."""
        return dict(self._types)

    def scheduled(
        self,
        *,
        name: str | None = None,
        arguments: Mapping[str, Any] | None = None,
        **times: Unpack[TimeFields],
    ) -> Callable[[T], T]:
        """Declare a schedule, above `@app.job`: `@app.scheduled(cron="0 3 * * *")`."""
        return scheduled(self, name, arguments, times)

    @property
    def own_types(self) -> list[JobType[..., ..., Any]]:
        """Every registered type once, however many names it has."""
        return list(dict.fromkeys(self._types.values()))

    def register(self, type_: JobType[..., ..., Any]) -> None:
        """Add a type under all its names."""
        self.check_names(type_)
        self._types.update(dict.fromkeys(type_.names, type_))

    def check_names(self, type_: JobType[..., ..., Any]) -> None:
        """Refuse names that another handler has; a module may be loaded again."""
        for name in type_.names:
            known = self._types.get(name)
            if known is not None and known.place != type_.place:
                raise InvalidOption(
                    "name",
                    name,
                    f"one that no other job type has ({known.function.__qualname__} has it)",
                )


class Blueprint(Registry):
    """A part of an application in a module of its own: `mail = Blueprint()`, `@mail.job`.

    `app.include(mail)` makes its types those of an application, whose settings then fill in what
    they leave open. Several applications may include it; `send.enqueue(...)` goes to the last.
    """

    def __init__(self) -> None:
        super().__init__()
        self._included = False

    def join(self, app: "Penstock") -> None:
        """Register everything with an application; if a part is refused, nothing is."""
        joined = {type_: type_.joined_to(app) for type_ in self.own_types}
        schedules = [one.of(joined[one.type]) for one in schedules_in(self.declarations)]
        for type_ in joined.values():
            app.check_names(type_)
        app.limits.check(self.limits.all)
        app.breakers.check(self.breakers)
        replaced = [replaced_by(schedule, app.declarations) for schedule in schedules]
        for mine, theirs in joined.items():
            app.register(theirs)
            mine.join(app)
        app.limits.add(self.limits.all)
        app.breakers.include(self.breakers)
        for schedule, known in zip(schedules, replaced, strict=True):
            add_schedule(schedule, known, app.declarations)
        self._included = True

    def register(self, type_: JobType[..., ..., Any]) -> None:
        """Add a type, as long as no application has included the blueprint."""
        if self._included:
            raise InvalidOption(
                "name", type_.name, "registered before an application includes its blueprint"
            )
        super().register(type_)
