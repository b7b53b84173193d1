"""A job in its three shapes: as enqueued, as leased to a worker, as read back."""

from enum import StrEnum

from msgspec import Struct

from penstock.model.dependency import Edge
from penstock.model.states import Status

MAX_NAME = 128
"""Of a type, a queue, a category, a schedule, a token."""

MAX_TEXT = 255
"""Of a key, a tag, a tenant, a workspace."""

MAX_TAGS = 32
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
    """A job about to be enqueued; times are milliseconds, the payload is JSON text."""

    id: str
    type: str
    payload: str = "{}"
    queue: str = DEFAULT_QUEUE
    category: str = "general"
    priority: int = DEFAULT_PRIORITY
    max_retries: int | None = None
    retry_delay_ms: int | None = None
    backoff_multiplier: float | None = None
    timeout_ms: int = DEFAULT_TIMEOUT_MS
    delay_ms: int = 0
    scheduled_at: int | None = None
    expires_in_ms: int | None = None
    expires_at: int | None = None
    key: str | None = None
    key_scope: KeyScope | None = None
    key_window_ms: int | None = None
    tenant_id: str = ""
    workspace_id: str | None = None
    created_by: str | None = None
    parent_job_id: str | None = None
    schedule_id: str | None = None
    limit_key: str | None = None
    order_key: str | None = None
    tags: tuple[str, ...] = ()
    metadata: str | None = None
    trace_context: str | None = None
    after: tuple[Edge, ...] = ()


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
    trace_context: str | None
    created_at: int
    updated_at: int
    queued_at: int | None
    started_at: int | None
    completed_at: int | None
    failed_at: int | None
