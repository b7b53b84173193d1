"""Spans of OpenTelemetry from enqueue to run, across processes.

A job carries where its trace comes from in `trace_context`, as a W3C `traceparent`. Nothing is
imported and nothing happens unless the application itself has set a tracer provider.
"""

import sys
from collections.abc import Awaitable, Callable, Generator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from penstock.model.job import Lease, NewJob
from penstock.model.settlement import Buried, Crashed, Failed, Settlement

if TYPE_CHECKING:
    from opentelemetry.context import Context as SpanContext
    from opentelemetry.trace import Span, Tracer

SYSTEM = "penstock"

_came_with: ContextVar[str | None] = ContextVar("penstock_traceparent", default=None)


@contextmanager
def came_with(traceparent: str | None) -> Generator[None, None, None]:
    """Take what is enqueued meanwhile for part of a trace that began in another program."""
    if traceparent is None:
        yield
        return
    token = _came_with.set(traceparent)
    try:
        yield
    finally:
        _came_with.reset(token)


def tracer() -> "Tracer | None":
    """The tracer to make spans with; none unless the application has set a provider."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None:
        return None
    provider = api.get_tracer_provider()
    if isinstance(provider, (api.ProxyTracerProvider, api.NoOpTracerProvider)):
        return None
    made: Tracer = provider.get_tracer(SYSTEM)
    return made


@contextmanager
def sending(jobs: Sequence[NewJob]) -> Generator[Sequence[NewJob], None, None]:
    """Enqueue under a span, which the jobs then name as where they come from."""
    found = tracer()
    if found is None:
        before = _came_with.get()
        yield jobs if before is None else [_traced(job, before) for job in jobs]
        return
    from opentelemetry.trace import SpanKind

    with found.start_as_current_span(
        _name("enqueue", [job.queue for job in jobs]),
        _parent_of(jobs),
        SpanKind.PRODUCER,
        _sent(jobs),
    ) as span:
        here = _traceparent(span)
        yield [replace(job, trace_context=here) for job in jobs]


async def traced(
    lease: Lease, owner: str, run: Callable[[], Awaitable[Settlement | None]]
) -> Settlement | None:
    """Run a lease under a span that follows from the one under which it was enqueued."""
    found = tracer()
    if found is None:
        return await run()
    from opentelemetry.trace import SpanKind

    with found.start_as_current_span(
        _name("run", [lease.queue]),
        _extracted(lease.trace_context),
        SpanKind.CONSUMER,
        _taken(lease, owner),
        record_exception=False,
    ) as span:
        settlement = await run()
        _finish(span, settlement)
        return settlement


def handed_on(lease: Lease) -> Lease:
    """The lease as another process gets it: what happens there belongs to the span of here."""
    api = sys.modules.get("opentelemetry.trace")
    if api is None or tracer() is None:
        return lease
    here = _traceparent(api.get_current_span())
    return lease if here is None else replace(lease, trace_context=here)


@contextmanager
def continued(trace_context: str | None) -> Generator[None, None, None]:
    """Have the spans of a handler follow from one of another process."""
    found = None if tracer() is None else _extracted(trace_context)
    if found is None:
        yield
        return
    from opentelemetry import context

    token = context.attach(found)
    try:
        yield
    finally:
        context.detach(token)


async def continuing(trace_context: str | None, call: Awaitable[Any]) -> Any:
    """The same for a handler that is awaited, in the context in which it runs."""
    with continued(trace_context):
        return await call


def _name(operation: str, queues: Sequence[str]) -> str:
    return f"{operation} {queues[0]}" if len(set(queues)) == 1 else operation


def _sent(jobs: Sequence[NewJob]) -> dict[str, Any]:
    attributes: dict[str, Any] = {
        "messaging.system": SYSTEM,
        "messaging.operation.type": "send",
        "messaging.operation.name": "enqueue",
    }
    if len({job.queue for job in jobs}) == 1:
        attributes["messaging.destination.name"] = jobs[0].queue
    if len(jobs) == 1:
        attributes["messaging.message.id"] = jobs[0].id
        attributes["penstock.job.type"] = jobs[0].type
    else:
        attributes["messaging.batch.message_count"] = len(jobs)
    return attributes


def _taken(lease: Lease, owner: str) -> dict[str, Any]:
    return {
        "messaging.system": SYSTEM,
        "messaging.operation.type": "process",
        "messaging.operation.name": "run",
        "messaging.destination.name": lease.queue,
        "messaging.message.id": lease.id,
        "messaging.client.id": owner,
        "penstock.job.type": lease.type,
        "penstock.job.attempt": lease.attempts + 1,
        "penstock.job.fence": lease.fence,
    }


def _finish(span: "Span", settlement: Settlement | None) -> None:
    from opentelemetry.trace import StatusCode

    outcome = "lost" if settlement is None else type(settlement).__name__.lower()
    span.set_attribute("penstock.job.outcome", outcome)
    if isinstance(settlement, Failed | Buried | Crashed):
        span.set_attribute("error.type", settlement.failure.code)
        # Not the message: it may quote what the job was given.
        span.set_status(StatusCode.ERROR, settlement.failure.error_class.value)


def _parent_of(jobs: Sequence[NewJob]) -> "SpanContext | None":
    """The span that is at work here, or else the trace that a request or a parent job names."""
    from opentelemetry.trace import get_current_span

    if get_current_span().get_span_context().is_valid:
        return None
    named = _came_with.get() or (jobs[0].trace_context if jobs else None)
    return _extracted(named)


def _traced(job: NewJob, before: str) -> NewJob:
    return job if job.trace_context else replace(job, trace_context=before)


def _traceparent(span: "Span") -> str | None:
    from opentelemetry.trace import set_span_in_context
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    carrier: dict[str, str] = {}
    TraceContextTextMapPropagator().inject(carrier, set_span_in_context(span))
    return carrier.get("traceparent")


def _extracted(traceparent: str | None) -> "SpanContext | None":
    if not traceparent:
        return None
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    return TraceContextTextMapPropagator().extract({"traceparent": traceparent})
