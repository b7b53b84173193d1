"""A registered handler: still a plain function, and a way to enqueue calls of it."""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping, Sequence
from copy import copy
from functools import cached_property, update_wrapper
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    ParamSpec,
    TypeVar,
    Unpack,
    get_args,
    overload,
)

import msgspec

from penstock.app.admission import check_wait
from penstock.app.after import Wait, awaited
from penstock.app.arguments import Arguments, decoder, deeper_than, depth, encode
from penstock.app.context import Context, Hooks
from penstock.app.options import CallFields, OptionFields, RunIn, with_options
from penstock.model.controls import parse_rate
from penstock.model.errors import (
    InvalidArguments,
    InvalidOption,
    InvalidResult,
    NotIncluded,
    PayloadTooLarge,
    ResultNotSerializable,
)
from penstock.model.ids import new_id
from penstock.model.job import Lease, NewJob
from penstock.model.options import check_name, check_seconds
from penstock.model.redact import redact_document
from penstock.model.retry import DEFAULT_CAP_MS, MAX_CAP_MS, Classifier, ErrorClass

if TYPE_CHECKING:
    from penstock.app.after import Parent
    from penstock.app.flow import Chain
    from penstock.app.handle import JobHandle
    from penstock.app.penstock import Penstock
    from penstock.model.job import Lease

R_co = TypeVar("R_co", covariant=True)
S = TypeVar("S")


class Step(ABC, Generic[R_co]):
    """A part of a flow whose result is an R: `fetch.new(url) | parse.new() | store.new()`."""

    __slots__ = ()

    def __or__(self, following: "Step[S]") -> "Chain[S]":
        """This step, then the other one, which takes this one's result."""
        from penstock.app.flow import Chain

        return Chain((self, following))

    @abstractmethod
    def child_of(self, parent: "Lease") -> "Step[R_co]":
        """The same step with every call a child of a running job."""


P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")


class Partial(Step[R_co]):
    """A call that lacks arguments; in a flow the step before fills the first of them."""

    __slots__ = ("job", "lacks", "type")

    def __init__(
        self, type_: "JobType[..., ..., R_co]", job: NewJob, lacks: tuple[str, ...] = ()
    ) -> None:
        self.type = type_
        self.job = job
        self.lacks = lacks

    def child_of(self, parent: Lease) -> "Prepared[R_co]":
        """The same call as a child: it belongs to whom its parent belongs, unless it says."""
        job = msgspec.structs.replace(
            self.job,
            parent_job_id=parent.id,
            tenant_id=self.job.tenant_id or parent.tenant_id,
            workspace_id=self.job.workspace_id or parent.workspace_id,
            trace_context=self.job.trace_context or parent.trace_context,
        )
        return Prepared(self.type, job, self.lacks)

    def complete(self) -> "Prepared[R_co]":
        """The call, refused if it lacks an argument."""
        if self.lacks:
            raise self.type.arguments.lacking(self.lacks[0])
        return self if isinstance(self, Prepared) else Prepared(self.type, self.job)


class Prepared(Partial[R_co]):
    """A call that is checked and ready to be enqueued: `resize.new("a.png", 100)`."""

    __slots__ = ()


_ELSEWHERE = frozenset({"apply_async", "delay", "enqueue_call", "kiq", "schedule", "send"})
"""What other libraries call it."""


class JobType(Generic[P, Q, R]):
    """What `@app.job` makes of a function."""

    app: "Penstock"

    def __init__(
        self,
        app: "Penstock | None",
        function: Callable[Q, Any],
        *,
        name: str,
        aliases: Sequence[str],
        options: NewJob,
        given: Mapping[str, Any] = MappingProxyType({}),
        run_in: RunIn | None,
        lease: float | None,
        classify: Sequence[Classifier],
        budgets: Mapping[ErrorClass, int],
        retry_cap: float | None,
        critical: bool = False,
        per_worker: int | None = None,
        rate_per_worker: str | None = None,
    ) -> None:
        update_wrapper(self, function)
        if app is not None:
            self.app = app
        self.function = function
        self.name = name
        self.names = (name, *aliases)
        for each in self.names:
            check_name("name", each)
        if lease is not None:
            check_seconds("lease", lease)
        self._given = given
        self._set_defaults(options)
        self.is_async = inspect.iscoroutinefunction(function)
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise InvalidOption("handler", name, "a function that returns, not one that yields")
        self.run_in: RunIn = run_in or ("loop" if self.is_async else "thread")
        if self.run_in not in get_args(RunIn):
            raise InvalidOption("run_in", run_in, f"one of: {', '.join(get_args(RunIn))}")
        if self.run_in == "loop" and not self.is_async:
            raise InvalidOption("run_in", "loop", "'thread' or 'process' for a sync handler")
        if self.run_in == "thread" and self.is_async:
            raise InvalidOption("run_in", "thread", "'loop' or 'process' for an async handler")
        self.lease = lease
        self.critical = critical
        self.per_worker = None if per_worker is None else _at_once(per_worker)
        """How many of them one worker runs at once, at most."""
        self.rate_per_worker = None if rate_per_worker is None else parse_rate(rate_per_worker)
        """How many one worker begins in how many milliseconds, at most."""
        self.hooks = Hooks()
        """Those of this type alone, called after those of the application."""
        self.classify = _classifiers(classify)
        self.budgets = dict(budgets)
        self.retry_cap_ms = _cap_ms(retry_cap)
        self.arguments = Arguments(function, name)
        self.is_plain = self.run_in == "loop" and not (
            self.arguments.takes_context or self.arguments.injected
        )

    def __call__(self, *args: Q.args, **kwargs: Q.kwargs) -> Any:
        """Call the function itself, as if it had never been decorated."""
        return self.function(*args, **kwargs)

    if not TYPE_CHECKING:  # or a type checker would take every attribute for granted

        def __getattr__(self, name: str) -> Any:
            if name == "app":
                raise NotIncluded(self.name)
            elsewhere = "; it is enqueued with `enqueue`" if name in _ELSEWHERE else ""
            raise AttributeError(f"a job type has no attribute {name!r}{elsewhere}")

    def join(self, app: "Penstock") -> None:
        """Become a type of an application, which fills in what its author left open."""
        self._set_defaults(app.checked(with_options(app.default_options(), **self._given)))
        self.app = app

    def joined_to(self, app: "Penstock") -> "JobType[P, Q, R]":
        """Return the same type as one of an application."""
        joined = copy(self)
        joined.join(app)
        return joined

    def _set_defaults(self, options: NewJob) -> None:
        self.defaults = msgspec.structs.replace(options, type=self.name)

    def __repr__(self) -> str:
        return f"<job type {self.name!r}>"

    @property
    def place(self) -> tuple[str, str]:
        """Where its function is written, which a module that is loaded again does not change."""
        return self.function.__module__, self.function.__qualname__

    @overload
    def new(self, *args: P.args, **kwargs: P.kwargs) -> Prepared[R]: ...
    @overload
    def new(self) -> Partial[R]: ...  # type: ignore[overload-cannot-match]  # it is, once P is known

    def new(self, *args: Any, **kwargs: Any) -> Partial[R]:
        """Check a call without enqueueing it, for `app.enqueue_many`, `ctx.enqueue` and flows.

        Arguments may be missing; a flow fills the first of them, and nothing else takes the call.
        """
        return self.draft(self.defaults, args, kwargs)

    def partial(self, *args: Any, **kwargs: Any) -> Partial[R]:
        """Like `new`, typed for a call of a flow that names only some of its arguments."""
        return self.draft(self.defaults, args, kwargs)

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> "JobHandle[R]":
        """Enqueue a call; typed like the function, without the context."""
        connection = _take_connection(self.arguments, kwargs)
        prepared = self.prepare(self.defaults, args, kwargs)
        return await self.app.enqueue(prepared, connection=connection)

    @overload
    def options(  # type: ignore[overload-overlap]  # an argument that is awaited is not passed
        self,
        *,
        connection: object | None = None,
        wait: float | bool | None = None,
        **changes: Unpack[CallFields],
    ) -> "Configured[P, R]": ...
    @overload
    def options(
        self,
        *,
        after: "Wait | Sequence[Parent | Wait]",
        connection: object | None = None,
        wait: float | bool | None = None,
        **changes: Unpack[OptionFields],
    ) -> "Configured[..., R]": ...

    def options(
        self, *, connection: object | None = None, wait: float | bool | None = None, **changes: Any
    ) -> "Configured[..., R]":
        """Return the type with other options: `send.options(delay=60, key="k").enqueue(...)`."""
        chosen = self.app.checked(with_options(self.defaults, **changes))
        return Configured(self, chosen, connection, check_wait(wait))

    def from_payload(self, payload: str, options: NewJob) -> Prepared[R]:
        """A call given as JSON text, as the command line has it."""
        self.check_bounds(payload)
        self.arguments.check(payload, awaited(options.after))
        return self._with_payload(options, payload).complete()

    def check_bounds(self, payload: str) -> None:
        """Refuse a payload written by hand that is too large or nests too deep."""
        given: object = payload
        if not isinstance(given, str):
            raise InvalidArguments(self.name, "payload", "JSON text", type(given).__name__)
        self._check_size(payload, "payload")
        limit = self.app.settings.payload_depth
        if deeper_than(payload, limit):
            levels = str(depth(payload))
            raise InvalidArguments(
                self.name, "payload", f"at most {limit} levels of nesting", levels
            )

    def encode_result(self, value: Any) -> str:
        """A handler's value as JSON text, checked against what the handler declares."""
        if value is None and self._may_return_none:
            return "null"
        try:
            text = encode(value)
        except (TypeError, ValueError, RecursionError, msgspec.MsgspecError) as error:
            raise ResultNotSerializable(self.name, type(value).__name__) from error
        self._check_size(text, "result")
        try:
            self._result_decoder.decode(text)
        except (msgspec.MsgspecError, ValueError) as error:
            raise InvalidResult(self.name, str(error)) from error
        return redact_document(text) if self.app.settings.redact_results else text

    def decode_result(self, text: str | None) -> R:
        """A stored value with the type the handler declares."""
        return self._result_decoder.decode(text or "null")  # type: ignore[no-any-return]

    @cached_property
    def _result_decoder(self) -> "msgspec.json.Decoder[Any]":
        hints = inspect.get_annotations(self.function, eval_str=True)
        return decoder(hints.get("return", Any))

    @cached_property
    def _may_return_none(self) -> bool:
        try:
            self._result_decoder.decode("null")
        except (msgspec.MsgspecError, ValueError):
            return False
        return True

    def prepare(
        self, options: NewJob, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Prepared[R]:
        """Check a whole call under given options."""
        return self.draft(options, args, kwargs).complete()

    def draft(self, options: NewJob, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Prepared[R]:
        """Check what is given of a call under given options."""
        filled = awaited(options.after) if options.after else ()
        payload, lacks = self.arguments.encode(args, kwargs, filled)
        return self._with_payload(options, payload, lacks)

    def _check_size(self, text: str, what: str) -> None:
        limit = self.app.settings.payload_limit
        if len(text) * 4 > limit < len(text.encode()):
            raise PayloadTooLarge(self.name, len(text.encode()), limit, what)

    def _with_payload(
        self, options: NewJob, payload: str, lacks: tuple[str, ...] = ()
    ) -> Prepared[R]:
        self._check_size(payload, "payload")
        if self.app.settings.redact_payloads:
            payload = redact_document(payload)
        job = msgspec.structs.replace(options, id=new_id(), payload=payload)
        return Prepared(self, job, lacks)


class Configured(Generic[P, R]):
    """A job type with options for the next enqueues."""

    __slots__ = ("_connection", "_options", "_type", "_wait")

    def __init__(
        self,
        type_: "JobType[P, ..., R]",
        options: NewJob,
        connection: object | None,
        wait: float | bool | None,
    ) -> None:
        self._type = type_
        self._options = options
        self._connection = connection
        self._wait = wait

    @overload
    def new(self, *args: P.args, **kwargs: P.kwargs) -> Prepared[R]: ...
    @overload
    def new(self) -> Partial[R]: ...  # type: ignore[overload-cannot-match]  # it is, once P is known

    def new(self, *args: Any, **kwargs: Any) -> Partial[R]:
        """Check a call without enqueueing it."""
        return self._type.draft(self._options, args, kwargs)

    def partial(self, *args: Any, **kwargs: Any) -> Partial[R]:
        """Like `new`, typed for a call of a flow that names only some of its arguments."""
        return self._type.draft(self._options, args, kwargs)

    async def enqueue(self, *args: P.args, **kwargs: P.kwargs) -> "JobHandle[R]":
        """Enqueue a call with these options."""
        connection = _take_connection(self._type.arguments, kwargs) or self._connection
        prepared = self._type.prepare(self._options, args, kwargs)
        return await self._type.app.enqueue(prepared, connection=connection, wait=self._wait)


def _classifiers(given: Any) -> tuple[Classifier, ...]:
    """One classifier or several, each a function or a mapping of exception types."""
    several: list[Any] = []
    if isinstance(given, Mapping) or callable(given):
        several.append(given)
    else:
        several.extend(given)
    for classifier in several:
        if not isinstance(classifier, Mapping) and not callable(classifier):
            raise InvalidOption("classify", classifier, "a function or a mapping of exceptions")
    return tuple(several)


def _at_once(per_worker: Any) -> int:
    whole = isinstance(per_worker, int) and not isinstance(per_worker, bool)
    if not whole or per_worker < 1:
        raise InvalidOption("per_worker", per_worker, "a whole number, 1 or more")
    return int(per_worker)


def _cap_ms(seconds: float | None) -> int:
    if seconds is None:
        return DEFAULT_CAP_MS
    if not 0 < seconds * 1000 <= MAX_CAP_MS:
        raise InvalidOption("retry_cap", seconds, "a number of seconds up to 3600")
    return int(seconds * 1000)


def _take_connection(arguments: Arguments, kwargs: dict[str, Any]) -> object | None:
    """`connection=` joins a transaction unless the handler has a parameter of that name."""
    if "connection" in kwargs and not arguments.has("connection"):
        connection: object = kwargs.pop("connection")
        return connection
    return None


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
