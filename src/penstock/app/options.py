"""The options of a job: defaults of its type, and what one enqueue overrides."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal, TypedDict, Unpack

from msgspec.structs import replace

from penstock.app.after import After, Wait, edges_of
from penstock.model.errors import NOT_SHOWN, InvalidOption, UnknownOption
from penstock.model.job import OPTIONS, KeyScope, NewJob
from penstock.model.retry import Classifier, ErrorClass

if TYPE_CHECKING:
    from penstock.app.after import Parent

RunIn = Literal["loop", "thread", "process"]


class OptionFields(TypedDict, total=False):
    """The options as keyword arguments, durations in seconds; `NewJob` says what they mean."""

    queue: str
    priority: int
    max_retries: int | None
    timeout: float
    retry_delay: float | None
    backoff: float | None
    delay: float
    at: datetime | None
    expires_in: float | None
    key: str | int | None
    key_scope: str | None
    key_window: float | None
    category: str
    tenant: str | int
    workspace: str | int | None
    created_by: str | int | None
    limit_key: str | int | None
    order_key: str | int | None
    tags: Sequence[str | int]
    metadata: Mapping[str, Any] | None
    remove_on_complete: bool | int | str | timedelta | None
    remove_on_fail: bool | int | str | timedelta | None


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
    per_worker: int | None
    rate_per_worker: str | None
    breaker: str | None
    critical: bool


_OF_TYPES = Registration.__optional_keys__ - OptionFields.__optional_keys__


class CallFields(OptionFields, total=False):
    """The options of one call; what it runs after is no matter of its type."""

    after: "Parent | After | Sequence[Parent | After] | None"


class AwaitingFields(OptionFields, total=False):
    """The same where parents' results may fill arguments, so that not all have to be given."""

    after: "Parent | Wait | Sequence[Parent | Wait] | None"


def with_options(job: NewJob, /, **options: Unpack[AwaitingFields]) -> NewJob:
    """Return the job with other options, each checked."""
    fields: dict[str, Any] = {}
    for name, value in options.items():
        option = OPTIONS.get(name)
        if option is None and name in _OF_TYPES:
            raise InvalidOption(name, NOT_SHOWN, f"given to the job type: @app.job({name}=…)")
        if option is None:
            raise UnknownOption(name, OPTIONS)
        fields[option.field] = option.stored(edges_of(value) if name == "after" else value)
    changed = replace(job, **fields)
    return _with_scope(changed, fields) if _SCOPED & fields.keys() else changed


_SCOPED = {"key_scope", "key_window_ms"}


def _with_scope(job: NewJob, said: Collection[str]) -> NewJob:
    """A window says by itself how long a key keeps others out."""
    if job.key_window_ms is not None:
        return replace(job, key_scope=KeyScope.WINDOW)
    if job.key_scope is not KeyScope.WINDOW:
        return job
    if "key_scope" in said:
        expected = "a number of seconds when key_scope is 'window'"
        raise InvalidOption("key_window", None, expected)
    return replace(job, key_scope=None)
