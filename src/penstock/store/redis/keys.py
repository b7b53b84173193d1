"""What is kept under the keys of `lua/parts/common.lua`, and failures as scripts take them."""

from functools import cache, lru_cache

from msgspec import DecodeError, Struct
from msgspec.json import Decoder, encode

from penstock.model.failure import Failure
from penstock.model.job import KeyScope


def spelled(failure: Failure) -> dict[str, str]:
    """What is kept of a failure, by the names that the scripts use.

    `error` and `details` go to the job, `told` ends the execution's JSON array, and the rest
    belongs to the dead letter.
    """
    return {
        "reason": str(failure.error_class),
        "code": failure.code,
        "error": failure.message,
        "fingerprint": failure.fingerprint,
        "details": failure.details,
        "told": told(failure.error_class, failure.code, failure.message, failure.stack),
    }


def told(
    error_class: str | None, code: str | None, message: str | None, stack: str | None = None
) -> str:
    """The end of an execution's JSON array."""
    return encode((error_class, code, message, stack)).decode()[1:]


Lane = tuple[str, str, str, str]
"""Queue, tenant, type and limit key."""


class Doc(Struct, frozen=True, array_like=True):
    """The part of a job that never changes, as its field `doc`; ends that say nothing are cut."""

    max_retries: int | None
    timeout_ms: int
    category: str = "general"
    retry_delay_ms: int | None = None
    backoff_multiplier: float | None = None
    trace_context: str | None = None
    created_by: str | None = None
    tags: tuple[str, ...] | None = None
    workspace_id: str | None = None
    parent_job_id: str | None = None
    schedule_id: str | None = None
    metadata: str | None = None
    key: str | None = None
    key_scope: KeyScope | None = None
    order_key: str | None = None
    keep_completed: int | None = None
    keep_failed: int | None = None


AS_IN_JOB = tuple(name for name in Doc.__struct_fields__ if name not in ("timeout_ms", "tags"))
"""Fields of a `Doc` that its job has as they are."""


class Ran(Struct, frozen=True, array_like=True):
    """One execution, as the field `xFENCE` of its job; a completed one has the job's result."""

    ended_at: int
    worker: str
    status: str
    started_at: int
    wait_ms: int | None = None
    duration_ms: int | None = None
    cpu_ms: int | None = None
    memory_kb: int | None = None
    error_class: str | None = None
    error_code: str | None = None
    error: str | None = None
    error_stack: str | None = None


_DAMAGED = Doc(max_retries=0, timeout_ms=0)
_docs: Decoder[Doc] = Decoder(Doc)
_lanes: Decoder[Lane] = Decoder(Lane)


def encode_doc(*fields: object) -> str:
    """The text of a `Doc` without the fields at its end that say nothing."""
    last = len(fields)
    while fields[last - 1] is None:
        last -= 1
    return encode(fields[:last]).decode()


@lru_cache(maxsize=1024)
def decode_doc(text: bytes) -> Doc:
    """A `Doc` from its text; many jobs share one."""
    return _docs.decode(text)


def readable_doc(text: bytes) -> Doc:
    """The same for a reader: one that cannot be read is shown empty, so that its job is listed."""
    try:
        return decode_doc(text)
    except DecodeError:
        return _DAMAGED


def encode_lane(queue: str, tenant_id: str, type_: str, limit_key: str | None) -> str:
    """The one spelling of a lane."""
    return encode((queue, tenant_id, type_, limit_key or "")).decode()


@lru_cache(maxsize=4096)
def decode_lane(text: bytes) -> Lane:
    """A lane from its text."""
    return _lanes.decode(text)


@cache
def label(type_: str, queue: str) -> str:
    """How the figures of a type in a queue are named."""
    return encode((type_, queue)).decode()
