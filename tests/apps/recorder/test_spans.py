"""Sessions as OpenTelemetry: names and attributes of a pinned version, and never a text."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from penstock import Penstock, Settings
from penstock.apps.recorder.demo import BUTTONS
from penstock.apps.recorder.spans import SCHEMA, Span, otlp, send, spans_of
from penstock.testing.clock import FakeClock
from tests.apps.recorder.sessions import NOON, RECORDER, a_tool, a_turn, a_view, record

VIEW = a_view(
    [a_turn(1, 0, 60), a_turn(2, 10, 30, agent_id="a1", status="interrupted")],
    [a_tool(1, 5), a_tool(2, 20, turn=2, status="failed"), a_tool(3, 25, name="mcp__x__y")],
)


def named(spans: list[Span]) -> dict[str, Span]:
    return {span.name: span for span in spans}


def test_a_session_is_an_agent_with_chats_and_tools_below_it() -> None:
    spans = spans_of(VIEW)
    root, chat, helper, *tools = spans
    assert [span.name for span in spans] == [
        "invoke_agent Claude Code",
        "chat claude-sonnet-4-5",
        "invoke_agent claude-sonnet-4-5",
        "execute_tool Bash",
        "execute_tool Bash",
        "execute_tool mcp__x__y",
    ]
    assert root.parent_id == ""
    assert {chat.parent_id, helper.parent_id} == {root.span_id}
    assert [tool.parent_id for tool in tools] == [chat.span_id, helper.span_id, chat.span_id]
    assert {span.trace_id for span in spans} == {VIEW.row.id}
    assert len({span.span_id for span in spans}) == len(spans)


def test_attributes_are_those_of_the_conventions() -> None:
    root, chat, helper, tool, failed, outside = spans_of(VIEW)
    assert root.attributes == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.conversation.id": "s1",
        "gen_ai.request.model": "claude-sonnet-4-5",
        "gen_ai.response.model": "claude-sonnet-4-5",
        "gen_ai.agent.name": "Claude Code",
        "gen_ai.usage.input_tokens": 100,
        "gen_ai.usage.output_tokens": 200,
    }
    assert chat.attributes["gen_ai.operation.name"] == "chat"
    assert chat.attributes["gen_ai.usage.output_tokens"] == 20
    assert (helper.attributes["gen_ai.agent.id"], helper.error) == ("a1", "interrupted")
    assert tool.attributes == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.conversation.id": "s1",
        "gen_ai.tool.name": "Bash",
        "gen_ai.tool.call.id": "call-1",
        "gen_ai.tool.type": "function",
    }
    assert failed.attributes["error.type"] == "tool_error"
    assert outside.attributes["gen_ai.tool.type"] == "extension"


def test_a_collector_takes_the_document() -> None:
    document = otlp([VIEW])
    [resource] = document["resourceSpans"]
    [scope] = resource["scopeSpans"]
    assert scope["schemaUrl"] == SCHEMA == "https://opentelemetry.io/schemas/1.37.0"
    first: dict[str, Any] = scope["spans"][0]
    assert (len(first["traceId"]), len(first["spanId"])) == (32, 16)
    assert first["startTimeUnixNano"] == str(NOON * 1_000_000)
    assert first["status"] == {"code": 1}
    tokens = {"key": "gen_ai.usage.input_tokens", "value": {"intValue": "100"}}
    assert tokens in first["attributes"]
    assert scope["spans"][4]["status"] == {"code": 2, "message": "tool_error"}


def test_one_that_is_sent_twice_is_the_same_trace() -> None:
    assert spans_of(VIEW) == spans_of(VIEW)


def test_no_text_of_anybody_is_in_a_span() -> None:
    told = msgspec.json.encode(otlp([VIEW])).decode()
    for text in ("Why?", "Because.", "make test"):
        assert text not in told


@pytest.fixture
def exporter(monkeypatch: pytest.MonkeyPatch) -> InMemorySpanExporter:
    """What the program's own provider exports."""
    made, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(made))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    return made


async def test_a_session_that_settled_goes_to_the_program_s_own_tracer_once(
    exporter: InMemorySpanExporter, tmp_path: Path
) -> None:
    clock = FakeClock()
    settings = Settings(url=f"sqlite:///{tmp_path}/w.db", extension={"recorder": {"spans": True}})
    async with Penstock(settings=settings, extensions=["events", RECORDER], clock=clock) as app:
        await record(app)
        assert await send(app) == 0, "what was recorded before it was switched on is not sent"
        clock.advance(seconds=3_500)
        await record(app, BUTTONS, "s2")
        clock.advance(seconds=600)
        exporter.clear()
        assert [await send(app), await send(app)] == [1, 0]
    spans = exporter.get_finished_spans()
    roots = [span for span in spans if span.parent is None]
    assert [span.name for span in roots] == ["invoke_agent Cursor"]
    assert roots[0].instrumentation_scope is not None
    assert roots[0].instrumentation_scope.schema_url == SCHEMA
    assert {span.context.trace_id for span in spans if span.context} == {
        roots[0].context.trace_id if roots[0].context else 0
    }


async def test_nothing_is_sent_unless_it_is_asked_for(
    exporter: InMemorySpanExporter, tmp_path: Path
) -> None:
    clock = FakeClock()
    url = f"sqlite:///{tmp_path}/w.db"
    async with Penstock(url, extensions=["events", RECORDER], clock=clock) as app:
        await record(app)
        assert await send(app) == 0
