"""A job type as a class: typed data in, a typed result out, and hooks around it.

    class GreetingData(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
        user_name: str


    class Greeting(Worker[GreetingData, str]):
        \"""Greet a user.\"""

        name = "greeting"

        async def process(self, data: GreetingData, ctx: Context) -> str:
            return f"Hello {data.user_name}"


    add(app, Greeting, queue="mail", max_retries=2)
    await Greeting.enqueue(GreetingData(user_name="Ada"), tenant="north")

The fields of the data are the job's arguments, by the names that JSON has for them: from elsewhere
the same job is enqueued with `{"userName": "Ada"}`. What `add` makes is a job type like any other.
"""

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Mapping
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    TypeVar,
    Unpack,
    cast,
    get_args,
    get_origin,
)

import msgspec
import structlog
from msgspec import NODEFAULT, Struct

from penstock.app.arguments import encode
from penstock.app.blueprint import Registry
from penstock.app.context import Context, Hooks
from penstock.app.job_type import JobType, Prepared
from penstock.app.options import CallFields, Registration, with_options
from penstock.model.errors import InvalidOption, NotAdmitted, NotIncluded
from penstock.model.retry import POLICIES, ErrorClass, classify

if TYPE_CHECKING:
    from penstock.app.handle import JobHandle

log = structlog.get_logger("penstock.agents")

D = TypeVar("D", bound=Struct)
R = TypeVar("R")
W = TypeVar("W", bound="Worker[Any, Any]")


class Worker(ABC, Generic[D, R]):
    """A type of job; `process` does the work, and the rest may be left as it is.

    There is one object of it in a process, which runs many jobs at once: what belongs to one job
    stays in local variables, never in `self`.
    """

    name: ClassVar[str]
    example: ClassVar[Mapping[str, Any]] = {}
    """Data that make sense, as JSON has them: `penstock agents describe` shows them."""
    job_type: "ClassVar[JobType[..., ..., Any] | None]" = None

    @abstractmethod
    async def process(self, data: D, ctx: Context) -> R:
        """Do the work of one job; to run it twice is the same as to run it once."""

    async def on_start(self, ctx: Context) -> None:
        """Hear that a job begins."""

    async def on_complete(self, ctx: Context, result: R) -> None:
        """Hear that a job has returned its result."""

    async def on_failed(self, ctx: Context, error: BaseException) -> None:
        """Hear that a job has failed; `ctx.will_retry` says whether it is tried again."""

    async def on_progress(self, ctx: Context, progress: float | Mapping[str, Any]) -> None:
        """Hear how far a job is, as it was told to `ctx.progress`."""

    def is_retryable(self, error: BaseException) -> bool | None:
        """Say whether an error is worth another try: True for those of networks and servers.

        False makes a dead letter of the job at once. None leaves it to what holds for every type:
        what cannot succeed, such as invalid data, is not tried again, and what nobody knows is.
        """
        return True if is_temporary(error) else None

    @classmethod
    def new(cls: "type[Worker[D, R]]", data: D, **options: Unpack[CallFields]) -> Prepared[R]:
        """Check a call without enqueueing it, for `tx.enqueue`, `ctx.enqueue` and flows."""
        type_ = cls.job_type
        if type_ is None:
            raise NotIncluded(cls.name)
        return cast("Prepared[R]", prepared(type_, data, options))

    @classmethod
    async def enqueue(
        cls: "type[Worker[D, R]]", data: D, **options: Unpack[CallFields]
    ) -> "JobHandle[R]":
        """Enqueue a job: `await Greeting.enqueue(GreetingData(...), tenant="north")`."""
        call = cls.new(data, **options)
        return await call.type.app.enqueue(call)


def prepared(
    type_: JobType[..., ..., Any], data: Struct | Mapping[str, Any], options: CallFields
) -> Prepared[Any]:
    """Check a call of a type whose arguments are given as one record, or as JSON has them."""
    chosen = type_.app.checked(with_options(type_.defaults, **options))
    return type_.from_payload(encode(data), chosen)


def enqueue_admitted(tx: Any, call: Prepared[Any], **more: Any) -> Any | None:
    """Enqueue what follows from something else; None, told in the log, if it is not let in.

    A tenant that has used its quota up goes without it: refused, it would undo what it follows
    from, and hold up the tenants beside it.
    """
    try:
        return tx.enqueue(call, **more)
    except NotAdmitted as refused:
        log.warning(
            "job_not_admitted",
            type=call.type.name,
            tenant=call.job.tenant_id,
            reason=refused.reason,
        )
        return None


def add(
    registry: Registry, worker: type[W], /, **registration: Unpack[Registration]
) -> JobType[..., ..., Any]:
    """Register a worker with an application or a blueprint, with options as `@app.job` has them."""
    made = worker()
    own: Registration = {"name": worker.name, "classify": [_classifier(made)]}
    type_ = registry.job(**own | registration)(_handler(made))
    type_.hooks = _hooks(made)
    type_.arguments.whole = _checking(types_of(worker)[0])
    worker.job_type = type_
    return cast("JobType[..., ..., Any]", type_)


def is_temporary(error: BaseException) -> bool:
    """Whether an error is of a network, a timeout, a rate limit (429) or a server (500 and up)."""
    if type(error).__name__ == "NetworkError" or getattr(error, "code", None) == "ECONNRESET":
        return True
    return classify(error) in _TEMPORARY


_TEMPORARY = {ErrorClass.TRANSIENT_NETWORK, ErrorClass.TIMEOUT, ErrorClass.RATE_LIMIT}


def types_of(worker: "type[Worker[Any, Any]]") -> tuple[type[Struct], Any]:
    """Return the types of a worker's data and of its result."""
    for base in worker.__mro__:
        for parent in getattr(base, "__orig_bases__", ()):
            if get_origin(parent) is Worker:
                data, result = get_args(parent)
                if isinstance(data, type) and issubclass(data, Struct):
                    return data, result
    expected = "a class Worker[Data, Result] whose data is a msgspec.Struct"
    raise InvalidOption("worker", worker.__qualname__, expected)


def _checking(data_type: type[Struct]) -> Callable[[Mapping[str, Any]], object]:
    """Return what makes the whole data of its fields, and so refuses what does not go together."""
    names = {field.encode_name: field.name for field in msgspec.structs.fields(data_type)}
    return lambda values: data_type(**{names[name]: value for name, value in values.items()})


def _handler(worker: "Worker[Any, R]") -> Callable[..., Coroutine[Any, Any, R]]:
    """Return a function whose parameters are the fields of the worker's data."""
    made = type(worker)
    data_type, result_type = types_of(made)
    fields = {field.encode_name: field for field in msgspec.structs.fields(data_type)}
    defaults = {name: _default(field) for name, field in fields.items()}

    async def handle(ctx: Context, **values: Any) -> R:
        given = {
            fields[name].name: value
            for name, value in values.items()
            if value is not defaults[name]  # the record makes one of its own
        }
        return await worker.process(data_type(**given), ctx)

    parameters = [inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_ONLY, annotation=Context)]
    for name, field in fields.items():
        parameters.append(
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                default=defaults[name],
                annotation=field.type,
            )
        )
    annotations = {parameter.name: parameter.annotation for parameter in parameters}
    handle.__annotations__ = annotations | {"return": result_type}
    handle.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        parameters, return_annotation=result_type
    )
    handle.__doc__ = made.__doc__
    handle.__module__ = made.__module__
    handle.__name__, handle.__qualname__ = made.__name__, made.__qualname__
    return handle


def _default(field: "msgspec.structs.FieldInfo") -> Any:
    if field.default is not NODEFAULT:
        return field.default
    if field.default_factory is not NODEFAULT:
        return field.default_factory()
    return inspect.Parameter.empty


def _hooks(worker: "Worker[Any, Any]") -> Hooks:
    """Return those of its hooks that do something: others cost nothing."""
    hooks = Hooks()
    for name, listed in (
        ("on_start", hooks.start),
        ("on_complete", hooks.complete),
        ("on_failed", hooks.failed),
        ("on_progress", hooks.progress),
    ):
        if getattr(type(worker), name) is not getattr(Worker, name):
            listed.append(getattr(worker, name))
    return hooks


def _classifier(worker: "Worker[Any, Any]") -> Callable[[BaseException], ErrorClass | None]:
    """Turn what a worker says of an error into a class of errors."""

    def judged(error: BaseException) -> ErrorClass | None:
        retried = worker.is_retryable(error)
        if retried is None:
            return None
        known = classify(error)
        if POLICIES[known].retried == retried:
            return known
        return ErrorClass.UNKNOWN if retried else ErrorClass.INVALID_INPUT

    return judged
