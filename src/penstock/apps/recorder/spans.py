"""Sessions as OpenTelemetry: what an agent was asked, what its model did, which tools it used.

The names are those of the semantic conventions for generative AI in version 1.37.0, and stay so
until this file says otherwise. Ids are made from those of the session, so that one that is sent
twice is the same trace. No text of a person, a model or a tool is among them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from penstock.app import tracing
from penstock.apps.recorder.privacy import Choice, Privacy
from penstock.apps.recorder.reading import Sessions
from penstock.apps.recorder.records import SessionView, Tool, Turn
from penstock.apps.recorder.wording import platform

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

VERSION = "1.37.0"
SCHEMA = f"https://opentelemetry.io/schemas/{VERSION}"
SCOPE = "penstock.recorder"
SERVICE = "penstock"
INTERNAL, CLIENT = 1, 3
OK, ERROR = 1, 2
PROVIDERS = MappingProxyType(
    {"claude": "anthropic", "gpt": "openai", "o1": "openai", "o3": "openai", "gemini": "gcp.gemini"}
)
"""Who runs a model, by how its name begins."""

FAILED = MappingProxyType(
    {"failed": "tool_error", "denied": "permission_denied", "interrupted": "interrupted"}
)
"""What `error.type` says of a tool."""

SETTLED_MS = 300_000
"""A session of which nothing was heard for so long is sent; if it goes on, it is sent again."""
POSITION = "spans"

Value = str | int | float


class Span(Struct, frozen=True, kw_only=True):
    """One span; times are UTC milliseconds."""

    trace_id: str
    span_id: str
    parent_id: str
    name: str
    kind: int
    begun: int
    ended: int
    attributes: dict[str, Value]
    error: str = ""


def spans_of(view: SessionView) -> list[Span]:
    """The spans of a session: it, below it its turns and subagents, and below these their tools."""
    return list(_spans(view))


def otlp(views: Iterable[SessionView]) -> dict[str, Any]:
    """What `POST /v1/traces` of a collector takes, as JSON."""
    spans = [_document(span) for view in views for span in spans_of(view)]
    resource = {"service.name": SERVICE, "telemetry.sdk.language": "python"}
    scope = {"scope": {"name": SCOPE}, "spans": spans, "schemaUrl": SCHEMA}
    return {
        "resourceSpans": [
            {"resource": {"attributes": _attributes(resource)}, "scopeSpans": [scope]}
        ]
    }


async def send(app: "Penstock") -> int:
    """Hand sessions that have settled to the program's own tracer; how many. The leader's pass.

    Without a tracer, or unless the settings want it, nothing is sent.
    """
    if not app.extensions.settings("recorder").spans or tracing.tracer() is None:
        return 0
    now, sent = app.store.clock.now(), 0
    row = await app.read(lambda tx: tx.recorder.row("position", (POSITION,)))
    since = now - SETTLED_MS if row is None else int(row[2]) + 1
    async for chosen in Privacy(app).sessions(Choice(since=since, until=now - SETTLED_MS)):
        emit(await Sessions(app).get(chosen.id))
        await _reached(app, chosen.last_at)
        sent += 1
    if row is None and not sent:
        await _reached(app, since - 1)  # what was recorded before it was switched on is not sent
    return sent


async def _reached(app: "Penstock", at: int) -> None:
    kept = (POSITION, POSITION, at, "", at, app.store.clock.now())
    await app.transact(lambda tx: tx.recorder.run("keep_position", kept))


def emit(view: SessionView) -> None:
    """Make the spans of a session with the provider of the program, which exports them."""
    from opentelemetry import trace

    tracer = trace.get_tracer(SCOPE, schema_url=SCHEMA)
    kinds = {INTERNAL: trace.SpanKind.INTERNAL, CLIENT: trace.SpanKind.CLIENT}
    made: dict[str, trace.Span] = {}
    for span in spans_of(view):
        parent = made.get(span.parent_id, trace.INVALID_SPAN)
        started = tracer.start_span(
            span.name,
            context=trace.set_span_in_context(parent),
            kind=kinds[span.kind],
            attributes=span.attributes,
            start_time=span.begun * 1_000_000,
        )
        made[span.span_id] = started
        if span.error:
            started.set_status(trace.StatusCode.ERROR, span.error)
        started.end(span.ended * 1_000_000)


def _spans(view: SessionView) -> Iterator[Span]:
    row = view.row
    root = _id(row.id, "session")
    agent = platform(row.platform)
    yield Span(
        trace_id=row.id,
        span_id=root,
        parent_id="",
        name=f"invoke_agent {agent}",
        kind=INTERNAL,
        begun=row.started_at,
        ended=max(row.started_at, row.last_at),
        attributes={
            **_common(view, "invoke_agent", row.model),
            "gen_ai.agent.name": agent,
            **_usage(row.tokens.input, row.tokens.output),
        },
    )
    for turn in view.turns:
        yield _turn(view, turn, root)
    turns = {turn.n for turn in view.turns}
    for tool in view.tools:
        parent = _id(row.id, "turn", str(tool.turn)) if tool.turn in turns else root
        yield _tool(view, tool, parent)


def _turn(view: SessionView, turn: Turn, root: str) -> Span:
    """A turn is a chat with a model; that of a subagent is an agent of its own."""
    model = turn.model or view.row.model
    operation = "chat" if turn.agent_id is None else "invoke_agent"
    helper: dict[str, Value] = {} if turn.agent_id is None else {"gen_ai.agent.id": turn.agent_id}
    failed = turn.status if turn.status in ("failed", "interrupted") else ""
    return Span(
        trace_id=view.row.id,
        span_id=_id(view.row.id, "turn", str(turn.n)),
        parent_id=root,
        name=f"{operation} {model}" if model else operation,
        kind=CLIENT if turn.agent_id is None else INTERNAL,
        begun=turn.started_at,
        ended=max(turn.started_at, turn.ended_at or view.row.last_at),
        attributes={
            **_common(view, operation, model),
            **helper,
            **_usage(turn.tokens.input, turn.tokens.output),
            **({"error.type": failed} if failed else {}),
        },
        error=failed,
    )


def _tool(view: SessionView, tool: Tool, parent: str) -> Span:
    failed = FAILED.get(tool.status, "")
    return Span(
        trace_id=view.row.id,
        span_id=_id(view.row.id, "tool", str(tool.n)),
        parent_id=parent,
        name=f"execute_tool {tool.name}",
        kind=INTERNAL,
        begun=tool.started_at,
        ended=tool.started_at + max(0, tool.duration_ms or 0),
        attributes={
            **_common(view, "execute_tool", None),
            "gen_ai.tool.name": tool.name,
            "gen_ai.tool.call.id": tool.tool_use_id,
            "gen_ai.tool.type": "extension" if tool.name.startswith("mcp__") else "function",
            **({"error.type": failed} if failed else {}),
        },
        error=failed,
    )


def _common(view: SessionView, operation: str, model: str | None) -> dict[str, Value]:
    found: dict[str, Value] = {
        "gen_ai.operation.name": operation,
        "gen_ai.provider.name": _provider(model or view.row.model),
        "gen_ai.conversation.id": view.row.session_id,
    }
    if model:
        found |= {"gen_ai.request.model": model, "gen_ai.response.model": model}
    return found


def _usage(given: int, written: int) -> dict[str, Value]:
    if not given and not written:
        return {}
    return {"gen_ai.usage.input_tokens": given, "gen_ai.usage.output_tokens": written}


def _provider(model: str | None) -> str:
    name = (model or "").rpartition("/")[2].lower()
    return next((who for begin, who in PROVIDERS.items() if name.startswith(begin)), "_OTHER")


def _id(*parts: str) -> str:
    return blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()


def _document(span: Span) -> dict[str, Any]:
    status = {"code": ERROR, "message": span.error} if span.error else {"code": OK}
    return {
        "traceId": span.trace_id,
        "spanId": span.span_id,
        "parentSpanId": span.parent_id,
        "name": span.name,
        "kind": span.kind,
        "startTimeUnixNano": f"{span.begun}000000",
        "endTimeUnixNano": f"{span.ended}000000",
        "attributes": _attributes(span.attributes),
        "status": status,
    }


def _attributes(named: Mapping[str, Value]) -> Sequence[dict[str, Any]]:
    return [{"key": name, "value": _value(value)} for name, value in named.items()]


def _value(value: Value) -> dict[str, Any]:
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}
