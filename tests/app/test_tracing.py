"""Spans from enqueue to run: who makes them, what they say, and what they cost when nobody asks."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing

import pytest
from opentelemetry import baggage, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from penstock import Context, Penstock
from penstock.app import tracing
from penstock.app.tracing import packed, unpacked
from penstock.testing import drain

TRACEPARENT = re.compile(r"00-[0-9a-f]{32}-[0-9a-f]{16}-0[13]")
BEFORE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    """What is exported while a provider is set, for the length of a test."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    yield exporter
    provider.shutdown()


def named(exporter: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in exporter.get_finished_spans() if span.name == name]


def parent_of(span: ReadableSpan) -> tuple[int, int] | None:
    return None if span.parent is None else (span.parent.trace_id, span.parent.span_id)


def place_of(span: ReadableSpan) -> tuple[int, int]:
    assert span.context is not None
    return span.context.trace_id, span.context.span_id


async def test_an_execution_follows_from_the_enqueue_that_asked_for_it(
    app: Penstock, spans: InMemorySpanExporter
) -> None:
    @app.job(queue="mail")
    async def send(to: str) -> None: ...

    async with app:
        handle = await send.enqueue("ann")
        assert TRACEPARENT.fullmatch((await handle.get()).trace_context or "")
        await drain(app)
    (sent,) = named(spans, "enqueue mail")
    (ran,) = named(spans, "run mail")
    assert (sent.kind, ran.kind) == (SpanKind.PRODUCER, SpanKind.CONSUMER)
    assert parent_of(ran) == place_of(sent)
    assert sent.attributes == {
        "messaging.system": "penstock",
        "messaging.operation.type": "send",
        "messaging.operation.name": "enqueue",
        "messaging.destination.name": "mail",
        "messaging.message.id": handle.id,
        "penstock.job.type": "send",
    }
    assert ran.attributes is not None
    assert dict(ran.attributes) | {"messaging.client.id": ""} == {
        "messaging.system": "penstock",
        "messaging.operation.type": "process",
        "messaging.operation.name": "run",
        "messaging.destination.name": "mail",
        "messaging.message.id": handle.id,
        "messaging.client.id": "",
        "penstock.job.type": "send",
        "penstock.job.attempt": 1,
        "penstock.job.fence": 1,
        "penstock.job.outcome": "completed",
    }
    assert ran.status.status_code is StatusCode.UNSET


async def test_a_trace_goes_through_the_handler_to_its_children(
    app: Penstock, spans: InMemorySpanExporter
) -> None:
    @app.job
    async def child() -> None: ...

    @app.job
    def parent(ctx: Context) -> None:
        with trace.get_tracer("shop").start_as_current_span("in the handler"):
            ctx.sync.enqueue(child.new())

    async with app:
        with trace.get_tracer("shop").start_as_current_span("request"):
            await parent.enqueue()
        await drain(app)
    (request,) = named(spans, "request")
    assert len({place_of(span)[0] for span in spans.get_finished_spans()}) == 1
    sent = named(spans, "enqueue default")
    assert parent_of(sent[0]) == place_of(request)
    (inside,) = named(spans, "in the handler")
    by_type = {span.attributes["penstock.job.type"]: span for span in named(spans, "run default")}
    assert parent_of(inside) == place_of(by_type["parent"])
    assert parent_of(by_type["child"]) == place_of(sent[1])


async def test_a_failure_is_told_by_its_name_and_never_by_its_words(
    app: Penstock, spans: InMemorySpanExporter
) -> None:
    @app.job(max_retries=0)
    async def fail(text: str) -> None:
        raise PermissionError(text)

    async with app:
        await fail.enqueue("canary-7f3a")
        await drain(app)
    (ran,) = named(spans, "run default")
    assert ran.status.status_code is StatusCode.ERROR
    assert ran.attributes is not None
    assert ran.attributes["error.type"] == "PermissionError"
    assert ran.attributes["penstock.job.outcome"] == "buried"
    (event,) = ran.events
    assert event.attributes is not None
    assert (event.name, event.attributes["exception.type"]) == ("exception", "PermissionError")
    assert "in fail" in str(event.attributes["exception.stacktrace"])
    assert not any("canary" in span.to_json() for span in spans.get_finished_spans())


def test_code_without_an_event_loop_is_part_of_the_trace_too(
    app: Penstock, spans: InMemorySpanExporter
) -> None:
    @app.job
    async def add() -> None: ...

    with closing(app.sync) as sync, trace.get_tracer("shop").start_as_current_span("request"):
        sync.enqueue(add.new())
    (request,), (sent,) = named(spans, "request"), named(spans, "enqueue default")
    assert parent_of(sent) == place_of(request)


async def test_jobs_enqueued_together_share_a_span(
    app: Penstock, spans: InMemorySpanExporter
) -> None:
    @app.job
    async def add(a: int) -> int:
        return a

    async with app:
        await app.enqueue_many([add.new(n) for n in range(3)])
        await drain(app)
    (sent,) = named(spans, "enqueue default")
    assert sent.attributes is not None
    assert sent.attributes["messaging.batch.message_count"] == 3
    assert {parent_of(span) for span in named(spans, "run default")} == {place_of(sent)}


async def test_a_request_from_elsewhere_is_followed(
    app: Penstock, spans: InMemorySpanExporter
) -> None:
    @app.job
    async def add() -> None: ...

    async with app:
        with tracing.came_with(BEFORE):
            await add.enqueue()
    (sent,) = named(spans, "enqueue default")
    assert parent_of(sent) == (0x0AF7651916CD43DD8448EB211C80319C, 0xB7AD6B7169203331)


async def test_without_a_provider_a_trace_is_only_passed_on(app: Penstock) -> None:
    @app.job
    async def add() -> None: ...

    async with app:
        plain = await add.enqueue()
        with tracing.came_with(BEFORE):
            handed = await add.enqueue()
        assert (await plain.get()).trace_context is None
        assert (await handed.get()).trace_context == BEFORE
        await drain(app)


async def test_a_context_that_is_no_traceparent_begins_a_new_trace(
    app: Penstock, spans: InMemorySpanExporter
) -> None:
    @app.job
    async def add() -> None: ...

    async with app:
        with tracing.came_with("nonsense"):
            await add.enqueue()
        await drain(app)
    (sent,) = named(spans, "enqueue default")
    assert sent.parent is None


async def test_state_and_baggage_reach_the_handler_and_the_jobs_it_enqueues(
    app: Penstock, spans: InMemorySpanExporter
) -> None:
    seen: list[object] = []

    @app.job
    async def child() -> None:
        seen.append(baggage.get_baggage("user"))
        seen.append(trace.get_current_span().get_span_context().trace_state.get("vendor"))

    @app.job
    def parent(ctx: Context) -> None:
        ctx.sync.enqueue(child.new())

    told = {"traceparent": BEFORE, "tracestate": "vendor=7", "baggage": "user=ann"}
    async with app:
        with tracing.came_with(packed(told)):
            handle = await parent.enqueue()
        carried = unpacked((await handle.get()).trace_context)
        assert (carried["tracestate"], carried["baggage"]) == ("vendor=7", "user=ann")
        await drain(app)
    assert seen == ["ann", "7"]
    assert baggage.get_all() == {}


def test_baggage_that_is_too_long_is_left_behind() -> None:
    told = {"traceparent": BEFORE, "baggage": "a=" + "x" * 5_000}
    assert packed(told) == BEFORE
    assert packed({}) is None
    assert unpacked('{"spoilt') == {}


async def test_every_attempt_is_a_span_of_its_own_below_the_same_enqueue(
    app: Penstock, spans: InMemorySpanExporter
) -> None:
    @app.job(max_retries=1, retry_delay=0)
    async def fail() -> None:
        raise ConnectionError("no")

    async with app:
        await fail.enqueue()
        await drain(app)
    (sent,) = named(spans, "enqueue default")
    ran = named(spans, "run default")
    assert [span.attributes["penstock.job.attempt"] for span in ran if span.attributes] == [1, 2]
    assert {parent_of(span) for span in ran} == {place_of(sent)}


async def test_a_job_that_a_schedule_enqueued_begins_a_trace(
    app: Penstock, spans: InMemorySpanExporter
) -> None:
    @app.job
    async def tick() -> None: ...

    async with app:
        await app.schedule("often", tick, every=60)
        await app.schedules.run("often")
        spans.clear()
        await drain(app)
    (ran,) = named(spans, "run default")
    assert ran.parent is None


def test_nothing_of_opentelemetry_is_loaded_by_itself() -> None:
    code = (
        "import asyncio, sys\n"
        "from penstock import Penstock\n"
        "from penstock.testing import drain\n"
        "app = Penstock('sqlite:///:memory:')\n"
        "@app.job\n"
        "async def add() -> None: ...\n"
        "async def main():\n"
        "    async with app:\n"
        "        await add.enqueue()\n"
        "        await drain(app)\n"
        "asyncio.run(main())\n"
        "print(*[name for name in sys.modules if name.startswith('opentelemetry')])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == ""
