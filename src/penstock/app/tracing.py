"""Spans of OpenTelemetry from enqueue to run, across processes."""

import re
import sys
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from msgspec import MsgspecError
from msgspec.json import decode, encode
from msgspec.structs import replace

from penstock.model.job import Lease, NewJob
from penstock.model.outcome import Buried, Crashed, Failed, Settlement

if TYPE_CHECKING:
    from opentelemetry.context import Context as SpanContext
    from opentelemetry.trace import Span, Tracer

TRACEPARENT = "traceparent"
MOST = 4_096
"""How long it may be; beyond, baggage and the like are left behind."""


def packed(headers: Mapping[str, str]) -> str | None:
    """Headers as one text; none if there is nothing to carry."""
    if set(headers) - {TRACEPARENT}:
        text = encode(dict(headers)).decode()
        if len(text) <= MOST:
            return text
    return headers.get(TRACEPARENT)


def unpacked(text: str | None) -> dict[str, str]:
    """The headers again."""
    if not text:
        return {}
    if not text.startswith("{"):
        return {TRACEPARENT: text}
    try:
        return decode(text, type=dict[str, str])
    except (MsgspecError, RecursionError):
        return {}


SYSTEM = "penstock"

_came_with: ContextVar[str | None] = ContextVar("penstock_trace", default=None)
_FRAME = re.compile(r'^ +File ".*", line \d+, in .*$', re.MULTILINE)


@contextmanager
def came_with(trace_context: str | None) -> Generator[None, None, None]:
    """Take what is enqueued meanwhile for part of a trace that began in another program."""
    if trace_context is None:
        yield
        return
    token = _came_with.set(trace_context)
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


def is_off() -> bool:
    """Whether nothing is traced here, as `sending` would find out, too."""
    return "opentelemetry.trace" not in sys.modules and _came_with.get() is None


def sending(jobs: Sequence[NewJob]) -> AbstractContextManager[Sequence[NewJob]]:
    """Enqueue under a span, which the jobs then name as where they come from."""
    known = tracer()
    if known is not None:
        return _spanned(known, jobs)
    before = _came_with.get()
    return nullcontext(jobs if before is None else [_traced(job, before) for job in jobs])


@contextmanager
def _spanned(known: "Tracer", jobs: Sequence[NewJob]) -> Generator[Sequence[NewJob], None, None]:
    from opentelemetry.trace import SpanKind

    name = _name("enqueue", [job.queue for job in jobs])
    with (
        _within(_parent_of(jobs)),
        known.start_as_current_span(name, kind=SpanKind.PRODUCER, attributes=_sent(jobs)),
    ):
        here = _carried()
        yield [replace(job, trace_context=here) for job in jobs]


async def traced(
    lease: Lease, owner: str, run: Callable[[], Awaitable[Settlement | None]]
) -> Settlement | None:
    """Run a lease under a span that follows from the one under which it was enqueued."""
    known = tracer()
    if known is None:
        return await run()
    from opentelemetry.trace import SpanKind

    with (
        _within(_extracted(lease.trace_context)),
        known.start_as_current_span(
            _name("run", [lease.queue]),
            kind=SpanKind.CONSUMER,
            attributes=_taken(lease, owner),
            record_exception=False,
        ) as span,
    ):
        settlement = await run()
        _finish(span, settlement)
        return settlement


def handed_on(lease: Lease) -> Lease:
    """The lease as another process gets it: what happens there belongs to the span of here."""
    if tracer() is None:
        return lease
    here = _carried()
    return lease if here is None else replace(lease, trace_context=here)


@contextmanager
def continued(trace_context: str | None) -> Generator[None, None, None]:
    """Have the spans of a handler follow from one of another process."""
    with _within(None if tracer() is None else _extracted(trace_context)):
        yield


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
        # Neither its message nor its source lines: they may quote what the job was given.
        frames = "\n".join(_FRAME.findall(settlement.failure.stack))
        details = {"exception.type": settlement.failure.code, "exception.stacktrace": frames}
        span.add_event("exception", details)
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


@contextmanager
def _within(trace: "SpanContext | None") -> Generator[None, None, None]:
    """Have what happens meanwhile belong to a trace, and see its baggage."""
    if trace is None:
        yield
        return
    from opentelemetry import context

    token = context.attach(trace)
    try:
        yield
    finally:
        context.detach(token)


def _carried() -> str | None:
    """Where this very place is, for a job to carry."""
    from opentelemetry.propagate import inject

    headers: dict[str, str] = {}
    inject(headers)
    return packed(headers)


def _extracted(trace_context: str | None) -> "SpanContext | None":
    headers = unpacked(trace_context)
    if not headers:
        return None
    from opentelemetry.propagate import extract

    return extract(headers)
