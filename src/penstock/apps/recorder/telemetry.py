"""Take in what Claude Code exports as OpenTelemetry, over OTLP/HTTP.

`OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:8642/api/otlp`, with `http/json` or `http/protobuf`.
"""

import zlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.apps.recorder.capture import LONGEST_KEPT, WHOLE, shortened
from penstock.apps.recorder.captured import (
    MODEL,
    PERSON,
    Captured,
    Message,
    content_hash,
    conversation_id,
    digest,
    written,
)
from penstock.apps.recorder.gate import cleaner_of
from penstock.apps.recorder.moments import TELEMETRY
from penstock.apps.recorder.otlp import Record, logs, metrics
from penstock.apps.recorder.platforms import text_of
from penstock.apps.recorder.routes import OTLP_LIMIT
from penstock.apps.recorder.writing import write
from penstock.model.errors import InvalidOption

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.extension import Request

PLATFORM = "claude_code"
PREFIX = "claude_code."
TYPES = {
    "user_prompt": "user_prompt",
    "assistant_response": "assistant_response",
    "tool_decision": "acceptance_decision",
    "tool_result": "tool_use",
    "api_request": "performance",
    "api_error": "error",
    "compaction": "compaction",
    "subagent_completed": "subagent",
}
TEXTS = {"user_prompt": (PERSON, "prompt"), "assistant_response": (MODEL, "response")}
PRIVATE = ("user.", "organization.", "host.", "enduser.")
"""What attributes that tell of a person or a machine begin with; these are not kept."""
NO_PARTS: dict[str, Any] = {"partialSuccess": {}}


async def take_logs(request: "Request") -> dict[str, Any]:
    """Take log records of assistants; those that name no session are passed over."""
    found = logs(_unpacked(request), request.headers.get("content-type", ""))
    await _keep(request.app, found, request.tenant)
    return NO_PARTS


async def take_metrics(request: "Request") -> dict[str, Any]:
    """Take points of metrics of assistants; those that name no session are passed over."""
    found = metrics(_unpacked(request), request.headers.get("content-type", ""))
    await _keep(request.app, found, request.tenant)
    return NO_PARTS


def _unpacked(request: "Request") -> bytes:
    body: bytes = request.body
    encoding = request.headers.get("content-encoding", "identity")
    if encoding == "identity":
        return body
    if encoding != "gzip":
        raise InvalidOption("content-encoding", encoding, "gzip or none")
    unpacking = zlib.decompressobj(wbits=31)
    try:
        found = unpacking.decompress(body, OTLP_LIMIT)
    except zlib.error as error:
        raise InvalidOption("body", "what was sent", "packed by gzip") from error
    if unpacking.unconsumed_tail or not unpacking.eof:
        raise InvalidOption(
            "body", "what was sent", f"whole, and at most {OTLP_LIMIT} bytes unpacked"
        )
    return found


async def _keep(app: "Penstock", records: Sequence[Record], tenant: str | None) -> None:
    """Write records down, without texts that hooks or a transcript have written down before."""
    now = app.store.clock.now()
    ordered = sorted(enumerate(records), key=lambda each: _sequence(each[1], each[0]))
    kept = []
    for _, record in ordered:
        clean = cleaner_of(app, str(record.told.get("session.id")))
        one = captured(record, tenant or "", now, clean)
        if one is not None and one.messages:
            spoken = await _spoken(app, one)
            fresh = [each for each in one.messages if content_hash(each.content) not in spoken]
            one = one._replace(messages=tuple(fresh))
        if one is not None:
            kept.append(one)
    await write(app, kept)


async def _spoken(app: "Penstock", one: Captured) -> set[str]:
    """The hashes of what was said in a session and did not come from telemetry."""
    asked = (conversation_id(one.tenant_id, one.platform, one.session_id),)
    rows = await app.read(lambda tx: tx.recorder.rows("hashes_by_others", asked))
    return {str(hashed) for (hashed,) in rows}


def _sequence(record: Record, n: int) -> tuple[int, int, int]:
    """The order of records: those of one time by the number that the assistant gave them."""
    number = record.told.get("event.sequence")
    return record.at, number if isinstance(number, int) else 0, n


def captured(record: Record, tenant: str, now: int, clean: Any) -> Captured | None:
    """A record as an event, made safe; None if it is of no session or of no assistant."""
    session = record.told.get("session.id")
    if not record.name.startswith(PREFIX) and record.value is not None:
        return None
    service = str(record.told.get("service.name") or "claude-code")
    if not isinstance(session, str) or not session or not service.startswith("claude"):
        return None
    name = record.name.removeprefix(PREFIX)[:100] or "unknown"
    told = {key: each for key, each in record.told.items() if not key.startswith(PRIVATE)}
    if record.value is not None:
        told["value"] = record.value
    at = record.at or now
    known_by = digest(session, name, str(record.at), written(told))
    whole, redactions = clean(shortened(told, WHOLE, 0))
    payload = shortened(whole, LONGEST_KEPT, 0)
    messages: tuple[Message, ...] = ()
    if name in TEXTS:
        role, field = TEXTS[name]
        text = text_of(whole.get(field))
        messages = (Message(role, text),) if text and text != "<REDACTED>" else ()
    return Captured(
        platform=PLATFORM,
        session_id=clean(session)[0][:500],
        hook_type=name,
        event_type="latency" if record.value is not None else TYPES.get(name, "trace"),
        event_id=f"telemetry-{known_by}",
        timestamp=at,
        payload=payload,
        source=TELEMETRY,
        messages=messages,
        tenant_id=tenant,
        redactions=redactions,
    )
