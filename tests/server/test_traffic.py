"""Noticing requests: how long they took, and which trace they belong to."""

import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from penstock import Penstock
from penstock.app.tracing import unpacked
from penstock.server.requests import BUCKETS, Timing, Traffic

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_a_duration_falls_into_the_first_bucket_that_holds_it() -> None:
    timing = Timing()
    for seconds in (0.001, BUCKETS[0], 0.3, 99.0):
        timing.add(seconds)
    assert timing.buckets == [2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1]
    assert timing.seconds == pytest.approx(0.001 + 0.005 + 0.3 + 99)


async def test_a_request_that_no_route_takes_has_no_series_of_its_own(
    server: FastAPI, http: AsyncClient
) -> None:
    for number in range(50):
        await http.get(f"/nothing/{number}")
        await http.request("BREW", f"/api/{number}")
    traffic: Traffic = server.state.server.observer.traffic
    assert {(method, route) for method, route, _ in traffic.requests} == {
        ("GET", "unmatched"),
        ("other", "unmatched"),
    }


@pytest.mark.parametrize(
    ("sent", "kept"),
    [(TRACEPARENT, TRACEPARENT), ("00-" + "0" * 32 + "-" + "0" * 16 + "-01", None), ("x", None)],
)
async def test_a_job_sent_over_http_belongs_to_the_trace_of_its_sender(
    app: Penstock, http: AsyncClient, sent: str, kept: str | None
) -> None:
    call = {"type": "add", "payload": {"a": 1}}
    answer = await http.post("/api/jobs", json=call, headers={"traceparent": sent})
    assert (await app.get(answer.json()["id"])).trace_context == kept


async def test_the_state_and_the_baggage_of_a_trace_come_along(
    app: Penstock, http: AsyncClient
) -> None:
    told = [
        ("traceparent", TRACEPARENT),
        ("tracestate", "a=1"),
        ("tracestate", "b=2"),
        ("baggage", "user=ann"),
    ]
    answer = await http.post("/api/jobs", json={"type": "add", "payload": {"a": 1}}, headers=told)
    carried = unpacked((await app.get(answer.json()["id"])).trace_context)
    assert carried == {
        "traceparent": TRACEPARENT,
        "tracestate": "a=1,b=2",
        "baggage": "user=ann",
    }


async def test_an_enqueue_over_http_comes_below_the_span_of_the_request_and_the_callers(
    http: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    call = {"type": "add", "payload": {"a": 1}}
    await http.post("/api/jobs", json=call, headers={"traceparent": TRACEPARENT})
    spans = {span.context.span_id: span for span in exporter.get_finished_spans() if span.context}
    (found,) = [span for span in spans.values() if span.name == "enqueue default"]
    above: list[int] = []
    while found.parent is not None:
        above.append(found.parent.span_id)
        if found.parent.span_id not in spans:
            break
        found = spans[found.parent.span_id]
    assert above[-1] == int(TRACEPARENT.split("-")[2], 16)
