"""A job in its three shapes: as enqueued, as leased to a worker, as read back."""

from enum import StrEnum
from types import NoneType
from typing import Annotated, get_args

from msgspec import Struct
from msgspec.structs import replace

from penstock.model.dependency import Edge
from penstock.model.options import (
    Choice,
    Document,
    Edges,
    Factor,
    Keep,
    Moment,
    Name,
    Option,
    Seconds,
    Text,
    Whole,
    Words,
)
from penstock.model.states import Status

MAX_REASON = 1_000
MAX_NOTES = 10_000

MAX_PAGE = 1_000
"""Rows of one answer."""

MAX_IDS = 100
"""Jobs asked for by their ids."""

MAX_BATCH = 10_000
"""Jobs of one request."""


PRIORITY_STEP_MS = 3_600_000


def rank(due_ms: int, priority: int) -> int:
    """Lower ranks are claimed first."""
    return due_ms + (priority - 1) * PRIORITY_STEP_MS


DEFAULT_QUEUE = "default"
DEFAULT_PRIORITY = 5
DEFAULT_TIMEOUT_MS = 300_000


class KeyScope(StrEnum):
    """How long a unique key keeps others out."""

    WHILE_PENDING = "while_pending"
    UNTIL_DONE = "until_done"
    WINDOW = "window"
    FOREVER = "forever"


class NewJob(Struct, frozen=True, kw_only=True):
    """A job about to be enqueued; times are milliseconds, the payload is JSON text.

    What a caller may say of it is annotated with an option. A new option is a line here and in
    `app.options.OptionFields`, which editors read, and a column in the stores.
    """

    id: str
    type: str
    payload: str = "{}"
    queue: Annotated[str, Name("The queue it waits in.", common=True)] = DEFAULT_QUEUE
    category: Annotated[str, Name("What kind of work it is, to look for and to count.")] = "general"
    priority: Annotated[
        int,
        Whole("1 is the most urgent.", common=True, low=1, high=10, meaning=" (1 is most urgent)"),
    ] = DEFAULT_PRIORITY
    max_retries: Annotated[
        int | None, Whole("How often a failure is tried again.", common=True, low=0, high=1000)
    ] = None
    retry_delay_ms: Annotated[
        int | None, Seconds("How long to wait before the first retry.", "retry_delay")
    ] = None
    backoff_multiplier: Annotated[
        float | None,
        Factor("What each further delay is multiplied by.", "backoff", low=1, high=10),
    ] = None
    timeout_ms: Annotated[
        int, Seconds("How long an execution may take.", "timeout", above_zero=True)
    ] = DEFAULT_TIMEOUT_MS
    delay_ms: Annotated[
        int,
        Seconds("How long to wait before it may start.", "delay", in_schedules=False, common=True),
    ] = 0
    scheduled_at: Annotated[
        int | None, Moment("The time from which on it may start.", "at", in_schedules=False)
    ] = None
    expires_in_ms: Annotated[
        int | None, Seconds("How long it may wait before it becomes a dead letter.", "expires_in")
    ] = None
    expires_at: int | None = None
    key: Annotated[
        str | None,
        Text(
            "While a job with this key is there, no other is made; its id is answered.",
            in_schedules=False,
            common=True,
        ),
    ] = None
    key_scope: Annotated[
        KeyScope | None,
        Choice("Until when the key keeps others out.", in_schedules=False, of=KeyScope),
    ] = None
    key_window_ms: Annotated[
        int | None,
        Seconds(
            "How long the key keeps others out, in the scope `window`.",
            "key_window",
            in_schedules=False,
        ),
    ] = None
    tenant_id: Annotated[
        str,
        Text("Whom it belongs to.", "tenant", in_schedules=False, common=True, may_be_empty=True),
    ] = ""
    workspace_id: Annotated[
        str | None, Text("The tenant's workspace it is for.", "workspace", may_be_empty=True)
    ] = None
    created_by: Annotated[str | None, Text("Who enqueued it.", local=True, may_be_empty=True)] = (
        None
    )
    parent_job_id: str | None = None
    schedule_id: str | None = None
    limit_key: Annotated[
        str | None, Text("Jobs with the same one share the limit of this name.")
    ] = None
    order_key: Annotated[
        str | None, Text("Jobs with the same one run one at a time, in their order.")
    ] = None
    tags: Annotated[tuple[str, ...], Words("Words to find it by.", common=True)] = ()
    metadata: Annotated[str | None, Document("What goes along; at most 64 KiB of JSON.")] = None
    keep_completed: Annotated[
        int | None,
        Keep("Whether, or when, it is removed once complete.", "remove_on_complete"),
    ] = None
    keep_failed: Annotated[
        int | None, Keep("The same once it has become a dead letter.", "remove_on_fail")
    ] = None
    trace_context: str | None = None
    after: Annotated[
        tuple[Edge, ...],
        Edges("Jobs that must complete before this one starts.", in_schedules=False),
    ] = ()


def _options() -> dict[str, Option]:
    defaults = NewJob(id="", type="")
    options: dict[str, Option] = {}
    for field, annotated in NewJob.__annotations__.items():
        for option in getattr(annotated, "__metadata__", ()):
            name, default = option.name or field, getattr(defaults, field)
            optional = NoneType in get_args(annotated.__origin__)
            options[name] = replace(
                option, name=name, field=field, default=default, optional=optional
            )
    return options


OPTIONS = _options()
"""Every option of a call, by the name that callers write."""


class Enqueued(Struct, frozen=True):
    """The store's answer: the job's id, and whether this call created it."""

    id: str
    created: bool


class Lease(Struct, frozen=True, array_like=True):
    """The right to run one execution, with all a worker needs for it."""

    id: str
    fence: int
    type: str
    queue: str
    priority: int
    payload: str
    attempts: int
    snoozes: int
    rescues: int
    max_retries: int | None
    retry_delay_ms: int | None
    backoff_multiplier: float | None
    timeout_ms: int
    expires_at: int | None
    checkpoint: str | None
    tenant_id: str
    workspace_id: str | None
    parent_job_id: str | None
    key: str | None
    metadata: str | None
    trace_context: str | None
    created_at: int
    queued_at: int
    started_at: int | None
    limit_key: str | None


class Job(Struct, frozen=True, kw_only=True):
    """A job as the store knows it; times are UTC milliseconds, documents are JSON text."""

    id: str
    type: str
    queue: str
    category: str
    status: Status
    priority: int
    payload: str
    result: str | None
    error: str | None
    error_details: str | None
    attempts: int
    max_retries: int | None
    snoozes: int
    rescues: int
    fence: int
    retry_delay_ms: int | None
    backoff_multiplier: float | None
    timeout_ms: int
    scheduled_at: int
    expires_at: int | None
    lease_owner: str | None
    lease_until: int | None
    cancel_requested_at: int | None
    progress_percent: float | None
    progress_message: str | None
    progress: str | None = None
    checkpoint: str | None
    tenant_id: str
    workspace_id: str | None
    created_by: str | None
    parent_job_id: str | None
    schedule_id: str | None
    waiting_on: int
    key: str | None
    key_scope: KeyScope | None
    limit_key: str | None
    order_key: str | None
    tags: tuple[str, ...]
    metadata: str | None
    keep_completed: int | None = None
    keep_failed: int | None = None
    trace_context: str | None
    created_at: int
    updated_at: int
    queued_at: int | None
    started_at: int | None
    completed_at: int | None
    failed_at: int | None


class JobChange(Struct, frozen=True, kw_only=True):
    """A job came to a status: what a follower is told.

    It says nothing else; whoever needs more reads the job by its id, which may have gone on since.
    `at` is UTC milliseconds, and `position` is for the store alone.
    """

    position: str
    job_id: str
    type: str
    queue: str
    tenant_id: str
    status: Status
    fence: int
    at: int
