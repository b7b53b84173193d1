"""Fault 32: a receiver of webhooks misbehaves, and what Standard Webhooks says happens.

It is worked off beside a receiver that behaves: whatever one does, the other gets its deliveries,
nothing is lost, and each delivery keeps its id however often it is tried.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.testing import FakeClock, drain
from tests.apps.agents.raw import rows
from tests.apps.agents.webhooks.conftest import hooks_app
from tests.apps.agents.webhooks.receiver import (
    Behaviour,
    Receiver,
    answering,
    hanging,
    hanging_up,
    receiving,
    writing,
)
from tests.faults.support.facts import TORTURE

pytestmark = [pytest.mark.faults, pytest.mark.quick]

SLOW_BODY = writing(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nbeg", then_hang=True)
RETRIED = {
    "hang": hanging,
    "hang up": hanging_up,
    "garbage": writing(b"\x16\x03\x01 what"),
    "half an answer": writing(b"HTTP/1.1 200 OK\r\nContent-"),
    "endless headers": writing(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 10_000),
    "500": answering(500),
    "503, come back in a minute": answering(503, Retry_After="60"),
    "429, come back in a minute": answering(429, Retry_After="60"),
    "429": answering(429),
}
TAKEN = {
    "slow body": SLOW_BODY,
    "huge body": writing(b"HTTP/1.1 200 OK\r\n\r\n", b"x" * 1_000_000, then_hang=True),
    "2xx": answering(202, "later"),
}
ENDED = {
    "redirect": (answering(302, Location="http://127.0.0.1:1/"), "non_retryable_error", True),
    "404": (answering(404), "non_retryable_error", True),
    "410": (answering(410), "webhook_disabled", False),
}


@pytest.fixture(params=["sqlite", "postgres"] if TORTURE else ["sqlite"])
async def app(
    request: pytest.FixtureRequest, tmp_path: Path, clock: FakeClock
) -> AsyncIterator[Penstock]:
    url = f"sqlite:///{tmp_path}/work.db"
    if request.param == "postgres":
        url = request.getfixturevalue("postgres_store_url")
    async with hooks_app(url, tmp_path / "agents", clock, timeout=2) as made:
        yield made


async def deliver(
    app: Penstock, clock: FakeClock, behaviour: Behaviour
) -> tuple[Any, Receiver, Receiver]:
    """One delivery to a receiver that behaves so at first, and one to another beside it."""
    async with receiving() as bad, receiving() as good:
        bad.behaviours = [behaviour]
        for each in (bad, good):
            await app.agents.webhooks.add(each.url, topics=["order.*"])
        handles = await app.agents.webhooks.publish("order.paid", {"n": 1})
        await drain(app, clock=clock, through=120)
        [beside] = good.got
        assert beside.delivery in {handle.id for handle in handles}
        [job] = [await app.get(handle.id) for handle in handles if handle.id != beside.delivery]
        assert {request.delivery for request in bad.got} == {job.id}
        return job, bad, good


@pytest.mark.parametrize("fault", RETRIED)
async def test_what_may_pass_is_tried_again_under_the_same_id(
    app: Penstock, clock: FakeClock, fault: str
) -> None:
    began = clock.now()
    job, bad, _ = await deliver(app, clock, RETRIED[fault])
    assert (job.status, len(bad.got)) == ("completed", 2)
    statuses = rows(
        app, "SELECT status FROM agents_webhook_deliveries WHERE job_id = ? ORDER BY n", job.id
    )
    first = "throttled" if fault.startswith("429") else "failed"
    assert statuses == [(first,), ("success",)]
    if "minute" in fault:
        assert job.completed_at - began >= 60_000


@pytest.mark.parametrize("fault", TAKEN)
async def test_what_was_said_to_be_taken_is_not_sent_again(
    app: Penstock, clock: FakeClock, fault: str
) -> None:
    job, bad, _ = await deliver(app, clock, TAKEN[fault])
    assert (job.status, len(bad.got)) == ("completed", 1)
    [(kept,)] = rows(
        app, "SELECT response_body FROM agents_webhook_deliveries WHERE job_id = ?", job.id
    )
    assert len(kept) <= 1_000


@pytest.mark.parametrize("fault", ENDED)
async def test_what_will_not_pass_ends_the_delivery(
    app: Penstock, clock: FakeClock, fault: str
) -> None:
    behaviour, reason, enabled = ENDED[fault]
    job, bad, _ = await deliver(app, clock, behaviour)
    assert (job.status, len(bad.got)) == ("completed", 1)
    assert f'"reason":"{reason}"' in job.result
    states = rows(
        app,
        "SELECT w.is_enabled FROM agents_webhooks w JOIN agents_webhook_deliveries d "
        "ON d.webhook_id = w.id WHERE d.job_id = ?",
        job.id,
    )
    assert states == [(int(enabled),)]
