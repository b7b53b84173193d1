"""Errors: each takes fields, writes its own sentence, and has a stable name for other programs.

`urn:penstock:problem:job-not-found` is `JobNotFound`, in both directions. What is not there is in
`not_found.py`, what a store could not do in `store_errors.py`, what concerns `penstock move` in
`transfer.py`.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

PREFIX = "urn:penstock:problem:"

_CAPITAL = re.compile(r"(?<!^)(?=[A-Z])")
_HOMES = tuple(
    f"penstock.model.{name}" for name in ("errors", "not_found", "store_errors", "transfer")
)


class PenstockError(Exception):
    """The base of every error that penstock raises on purpose."""

    def __reduce__(self) -> tuple[object, ...]:
        return _revive, (type(self), self.args, self.__dict__)


class UnknownType(PenstockError):
    """A job type that this application has not registered."""

    def __init__(self, job_type: str, known: Iterable[str] = ()) -> None:
        self.job_type = job_type
        self.known = tuple(known)
        listed = f"known types are {', '.join(self.known)}" if self.known else "none is registered"
        super().__init__(
            f"No job type is named {job_type!r} ({listed}); "
            "register it with @app.job or import the module that does."
        )


class NotIncluded(PenstockError):
    """A job type of a blueprint that belongs to no application yet."""

    def __init__(self, job_type: str) -> None:
        self.job_type = job_type
        super().__init__(
            f"Job type {job_type!r} belongs to a blueprint that no application includes; "
            "call app.include(blueprint) first."
        )


class InvalidArguments(PenstockError):
    """Arguments that do not fit the job type's signature."""

    def __init__(self, job_type: str, argument: str, expected: str, got: str) -> None:
        self.job_type = job_type
        self.argument = argument
        self.expected = expected
        self.got = got
        super().__init__(
            f"Argument {argument!r} of job type {job_type!r} is wrong: "
            f"expected {expected}, got {got}."
        )

    @classmethod
    def missing(cls, job_type: str, argument: str, expected: str) -> "InvalidArguments":
        """Name a required argument that was not passed."""
        return cls(job_type, argument, expected, "nothing")

    @classmethod
    def unexpected(cls, job_type: str, argument: str, known: Iterable[str]) -> "InvalidArguments":
        """Name an argument that the job type does not take."""
        names = ", ".join(known)
        return cls(
            job_type, argument, f"one of {names}" if names else "no arguments", "an unknown one"
        )


class PayloadTooLarge(PenstockError):
    """A payload or result over the size limit."""

    def __init__(self, job_type: str, size: int, limit: int, what: str = "payload") -> None:
        self.job_type = job_type
        self.size = size
        self.limit = limit
        self.what = what
        super().__init__(
            f"The {what} of job type {job_type!r} is {size:,} bytes, over the limit of {limit:,}; "
            "keep the data elsewhere and pass a reference to it, or raise the limit."
        )


NOT_SHOWN = object()
"""In place of a value that is a secret, or does not matter."""


class InvalidOption(PenstockError):
    """An option whose value is out of range or of the wrong form."""

    def __init__(self, option: str, value: object, expected: str) -> None:
        self.option = option
        # The text, not the object: whatever the value is, the error must still pickle.
        self.value = None if value is NOT_SHOWN else _shortened(value)
        self.expected = expected
        but = "" if self.value is None else f"is {self.value}, but it "
        super().__init__(f"Option {option!r} {but}must be {expected}.")


class UnknownOption(InvalidOption):
    """An option that is not there, probably a misspelt one."""

    def __init__(self, option: str, known: Iterable[str], what: str = "option") -> None:
        from difflib import get_close_matches

        names = tuple(known)
        super().__init__(option, NOT_SHOWN, f"one of: {', '.join(names)}")
        close = get_close_matches(option, names, 1)
        meant = f"; did you mean {close[0]!r}?" if close else "."
        self.args = (f"There is no {what} {option!r}{meant} Known are {', '.join(names)}.",)


class ResultNotSerializable(PenstockError):
    """A handler returned something that cannot be stored."""

    def __init__(self, job_type: str, result_type: str) -> None:
        self.job_type = job_type
        self.result_type = result_type
        super().__init__(
            f"Job type {job_type!r} returned a {result_type}, which cannot be stored as JSON; "
            "return plain data, a dataclass, a msgspec Struct or a Pydantic model."
        )


class InvalidResult(PenstockError):
    """A handler returned something else than it declares."""

    def __init__(self, job_type: str, problem: str) -> None:
        self.job_type = job_type
        self.problem = problem
        super().__init__(
            f"Job type {job_type!r} returned a value that does not fit its return annotation "
            f"({problem}); return what it declares, or change the annotation."
        )


class CorruptPayload(PenstockError):
    """A stored payload that can no longer be read as its type's arguments."""

    def __init__(self, job_id: str, job_type: str, problem: str) -> None:
        self.job_id = job_id
        self.job_type = job_type
        self.problem = problem
        super().__init__(
            f"The stored payload of job {job_id} is not valid for type {job_type!r} ({problem}); "
            "amend its arguments with `penstock dead amend`, or enqueue the work again. Where a "
            "parent's result fills one, the parent must return what it takes."
        )


class JobFailed(PenstockError):
    """The job whose result was awaited ended without one."""

    def __init__(self, job_id: str, status: str, error: str | None = None) -> None:
        self.job_id = job_id
        self.status = status
        self.error = error
        reason = f": {error}" if error else "."
        super().__init__(f"Job {job_id} ended as {status}{reason}")


class JobCancelled(JobFailed):
    """The job whose result was awaited was cancelled."""

    def __init__(self, job_id: str, error: str | None = None) -> None:
        super().__init__(job_id, "cancelled", error)


class ResultTimeout(PenstockError, TimeoutError):
    """The job had not ended when the wait for its result did."""

    def __init__(self, job_id: str, seconds: float, status: str | None = None) -> None:
        self.job_id = job_id
        self.seconds = seconds
        self.status = status
        state = f" and is still {status}" if status else ""
        super().__init__(
            f"Job {job_id} has no result after {seconds:g} s{state}; "
            f"wait longer, or see `penstock jobs explain {job_id}`."
        )


class KeyTaken(PenstockError):
    """A unique key that another job holds."""

    def __init__(self, key: str, holder: str, job_type: str | None = None) -> None:
        self.key = key
        self.holder = holder
        self.job_type = job_type
        of_type = f" of type {job_type!r}" if job_type else ""
        super().__init__(
            f"Key {key!r}{of_type} is held by job {holder}; "
            "wait until that job gives it up, or cancel it first."
        )


class IllegalTransition(PenstockError):
    """An action that the job's status does not allow."""

    def __init__(self, status: str, action: str, job_id: str | None = None) -> None:
        self.status = status
        self.action = action
        self.job_id = job_id
        subject = f"Job {job_id}" if job_id else "A job"
        advice = (
            "; run it again as a new job: `penstock jobs run-again`"
            if (status, action) == ("completed", "requeue")
            else ""
        )
        told = f"{subject} is {status}, and a job in that state allows no {action!r}{advice}."
        super().__init__(told)


class MissingExtra(PenstockError):
    """An optional dependency that is not installed."""

    def __init__(self, extra: str, module: str | None = None) -> None:
        self.extra = extra
        self.module = module
        lacking = f"the module {module!r}" if module else "packages that are not installed"
        super().__init__(f"This needs {lacking}; run `pip install 'penstock[{extra}]'`.")


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


class QueueFull(PenstockError):
    """A queue that takes no more jobs for now."""

    def __init__(
        self,
        queue: str,
        depth: int,
        limit: int,
        retry_after: float,
        live_workers: int | None = None,
    ) -> None:
        self.queue = queue
        self.depth = depth
        self.limit = limit
        self.retry_after = retry_after
        self.live_workers = live_workers
        from shlex import quote

        from penstock.model.wording import counted

        when = f"come back in about {retry_after:g} s"
        if live_workers == 0:
            when = "and no worker is alive to empty it: start one"
        super().__init__(
            f"Queue {queue!r} is full ({counted(depth, 'job')} queued, its limit is {limit:,}); "
            f"nothing was enqueued, {when}, or raise the limit with "
            f"`penstock limits set queue {quote(queue)} --depth {2 * limit}`."
        )


class NotAdmitted(PenstockError):
    """A job that a gate of an extension keeps out, for the reason that the gate gives."""

    def __init__(self, job_type: str, extension: str, reason: str) -> None:
        self.job_type = job_type
        self.extension = extension
        self.reason = reason.rstrip(".")
        super().__init__(f"Type {job_type!r} is not let in by {extension!r}: {self.reason}.")


class JobsRunning(PenstockError):
    """Jobs that are to be erased and still run."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        super().__init__(
            f"Of the jobs to erase, {jobs:,} still run; they were asked to stop: do it again in a "
            "moment, for them and for what they write until then."
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


def _revive(
    cls: type[PenstockError], args: tuple[object, ...], fields: dict[str, object]
) -> PenstockError:
    # Past __init__, which takes the fields and not the finished sentence in args.
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(fields)
    return error


def _shortened(value: object, limit: int = 80) -> str:
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= limit else text[: limit - 1] + "…"


def urn_of(kind: type[PenstockError]) -> str:
    """The name of a class of errors; one made elsewhere has that of the class it is made of."""
    while kind.__module__ not in _HOMES:
        kind = next(base for base in kind.__bases__ if issubclass(base, PenstockError))
    return PREFIX + _CAPITAL.sub("-", kind.__name__).lower()


def fields_of(error: PenstockError) -> dict[str, Any]:
    """What an error knows besides its sentence, as far as JSON can say it."""
    return {name: value for name, value in vars(error).items() if _is_plain(value)}


def error_of(urn: str, sentence: str, fields: Mapping[str, Any]) -> PenstockError | None:
    """The error of that name with its sentence and fields; none of a name nobody knows."""
    kind = known_errors().get(urn)
    if kind is None:
        return None
    return _revive(kind, (sentence,), {name: _tupled(value) for name, value in fields.items()})


@cache
def known_errors() -> dict[str, type[PenstockError]]:
    """Every error of ours by its name."""
    for home in _HOMES:
        import_module(home)
    kinds: list[type[PenstockError]] = [PenstockError, *_below(PenstockError)]
    return {urn_of(kind): kind for kind in kinds}


def _below(kind: type[PenstockError]) -> Iterator[type[PenstockError]]:
    for each in kind.__subclasses__():
        if each.__module__ in _HOMES:
            yield each
            yield from _below(each)


def _tupled(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _is_plain(value: object) -> bool:
    if isinstance(value, list | tuple):
        return all(isinstance(item, str) for item in value)
    return value is None or isinstance(value, str | int | float)
