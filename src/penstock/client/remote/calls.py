"""Calls as the API takes them."""

from typing import Any

import msgspec
from msgspec import Raw, to_builtins

from penstock.client.codec import encode
from penstock.client.options import AwaitingFields, JobOptions
from penstock.model.clock import iso
from penstock.model.dependency import Edge
from penstock.model.errors import InvalidArguments, InvalidOption
from penstock.model.job import NewJob

_SECONDS = {
    "retry_delay": "retry_delay_ms",
    "expires_in": "expires_in_ms",
    "key_window": "key_window_ms",
}
_NAMES = {
    "backoff": "backoff_multiplier",
    "key": "key",
    "key_scope": "key_scope",
    "tenant": "tenant_id",
    "workspace": "workspace_id",
    "limit_key": "limit_key",
    "order_key": "order_key",
}


def call_document(job: NewJob) -> dict[str, Any]:
    """A prepared call with all its options; what is not set, its type says over there."""
    told = options_document(job) | {"id": job.id, "type": job.type, "payload": Raw(job.payload)}
    told["delay"] = job.delay_ms / 1000
    if job.scheduled_at is not None:
        told["at"] = iso(job.scheduled_at)
    if job.after:
        told["after"] = [edge_document(edge) for edge in job.after]
    return told


def options_document(job: NewJob) -> dict[str, Any]:
    """How a job is to be run."""
    told: dict[str, Any] = {
        "queue": job.queue,
        "category": job.category,
        "priority": job.priority,
        "max_retries": job.max_retries,
        "timeout": job.timeout_ms / 1000,
        "tags": job.tags,
    }
    told |= {name: getattr(job, field) for name, field in _NAMES.items() if getattr(job, field)}
    for name, field in _SECONDS.items():
        ms = getattr(job, field)
        if ms is not None:
            told[name] = ms / 1000
    if job.metadata is not None:
        told["metadata"] = Raw(job.metadata)
    return told


def named_document(
    job_id: str, type_name: str, payload: str, options: AwaitingFields
) -> dict[str, Any]:
    """A call by name with the options that were given, which are checked here and over there."""
    by = options.get("created_by")
    if by is not None:
        expected = "left out: the server writes down whose token it is"
        raise InvalidOption("created_by", by, expected)
    checked = JobOptions().with_(**options)
    told: dict[str, Any] = {name: given for name, given in options.items() if given is not None}
    told |= {"id": job_id, "type": type_name, "payload": payload_document(type_name, payload)}
    if "after" in told:
        told["after"] = [edge_document(edge) for edge in checked.after]
    if "metadata" in told:
        told["metadata"] = Raw(encode(told["metadata"]))
    return told


def payload_document(type_name: str, payload: str) -> Raw:
    """Arguments given as JSON text, refused here if they are none; the rest the server checks."""
    try:
        msgspec.json.decode(payload, type=dict[str, Raw])
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidArguments(type_name, "payload", "an object in JSON", str(error)) from error
    return Raw(payload)


def edge_document(edge: Edge) -> Any:
    """What a job waits for; the id of the parent where that says it all."""
    if edge == Edge(parent_id=edge.parent_id):
        return edge.parent_id
    return {name: value for name, value in to_builtins(edge).items() if value is not None}
