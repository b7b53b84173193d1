"""Noticing requests: how long they took, and which trace they belong to."""

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from penstock import Penstock
from penstock.server.traffic import BUCKETS, Timing, Traffic

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
    traffic: Traffic = server.state.observer.traffic
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
