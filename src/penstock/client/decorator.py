"""What `@app.job(...)` takes, and what it returns."""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from penstock.client.context import Context
from penstock.client.job_type import JobType, RunIn
from penstock.client.options import OptionFields
from penstock.model.retry import Classifier, ErrorClass

P = ParamSpec("P")
R = TypeVar("R")


class Registration(OptionFields, total=False):
    """How a handler is registered: what holds for its type, and the defaults of its jobs."""

    name: str | None
    aliases: Sequence[str]
    run_in: RunIn | None
    lease: float | None
    classify: Sequence[Classifier]
    budgets: Mapping[ErrorClass, int] | None
    retry_cap: float | None
    concurrency: int | None
    rate: str | None
    breaker: str | None
    critical: bool


class Decorator:
    """Typed like `@app.job` itself."""

    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], Coroutine[Any, Any, R]], /
    ) -> JobType[P, Concatenate[Context, P], R]: ...
    @overload
    def __call__(
        self, function: Callable[Concatenate[Context, P], R], /
    ) -> JobType[P, Concatenate[Context, P], R]: ...
    @overload
    def __call__(self, function: Callable[P, Coroutine[Any, Any, R]], /) -> JobType[P, P, R]: ...
    @overload
    def __call__(self, function: Callable[P, R], /) -> JobType[P, P, R]: ...

    def __call__(self, function: Callable[..., Any], /) -> Any:
        """Only its type exists; `job` returns a function."""
        raise TypeError("use @app.job(...)")
