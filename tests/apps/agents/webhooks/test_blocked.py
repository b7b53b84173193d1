"""A tenant that has used its quota up goes without what follows by itself, and holds up nobody."""

import asyncio
import json

import pytest

from penstock import Penstock
from penstock.apps.agents.webhooks.delivery_log import Entry
from penstock.events import catch_up
from penstock.model.errors import InvalidOption, NotAdmitted
from penstock.testing import FakeClock, drain, tell_followers
from tests.apps.agents.raw import rows
from tests.apps.agents.webhooks.receiver import Receiver, answering


async def block(app: Penstock) -> None:
    """Have the tenant `poor` bring nothing in any more."""
    await app.agents.quotas.set("poor", "jobs", 0)


def ends_of(receiver: Receiver) -> list[str]:
    return [json.loads(request.body)["data"]["id"] for request in receiver.got]


async def test_others_are_told_of_their_jobs(hooks: Penstock, receiver: Receiver) -> None:
    @hooks.job
    async def greet() -> None: ...

    for tenant in ("poor", "rich"):
        await hooks.agents.webhooks.add(receiver.url, topics=["job.completed"], tenant=tenant)
    await tell_followers(hooks)
    await greet.options(tenant="poor").enqueue()
    rich = await greet.options(tenant="rich").enqueue()
    await block(hooks)
    await drain(hooks)
    await tell_followers(hooks)
    await drain(hooks)
    assert ends_of(receiver) == [rich.id]


async def test_others_are_told_of_their_events(hooks: Penstock, receiver: Receiver) -> None:
    for tenant in ("poor", "rich"):
        await hooks.agents.webhooks.add(receiver.url, topics=["event.*"], tenant=tenant)
        await hooks.events.append("order_paid", session_id=tenant, payload={}, tenant_id=tenant)
    await block(hooks)
    await catch_up(hooks, "agents.webhooks")
    await drain(hooks)
    [body] = [json.loads(request.body) for request in receiver.got]
    assert body["data"]["sessionId"] == "rich"


async def test_a_webhook_that_is_gone_is_disabled_all_the_same(
    hooks: Penstock, receiver: Receiver
) -> None:
    webhooks = hooks.agents.webhooks
    await webhooks.add(receiver.url, topics=["webhook.disabled"], tenant="poor")
    gone = (await webhooks.add(receiver.url, tenant="poor")).webhook
    handle = await webhooks.send(gone.id, {})
    await block(hooks)
    receiver.behaviours = [answering(410)]
    await drain(hooks)
    assert json.loads((await hooks.get(handle.id)).result or "")["reason"] == "webhook_disabled"
    assert not (await webhooks.get(gone.id)).is_enabled
    assert [each.status_code for each in await webhooks.deliveries(gone.id)] == [410]


async def test_sessions_of_all_tenants_expire(hooks: Penstock, clock: FakeClock) -> None:
    for tenant in ("poor", "rich"):
        await hooks.agents.sessions.open(tenant=tenant, user="ada", session_id=tenant)
    await block(hooks)
    clock.advance(seconds=3_600)
    await hooks.agents.enqueue("session-cleanup", {"maxAge": 1_000})
    await drain(hooks)
    found = rows(hooks, "SELECT id, status FROM agents_sessions ORDER BY id")
    assert found == [("poor", "expired"), ("rich", "expired")]


async def test_whoever_publishes_is_told_that_the_quota_is_used_up(
    here: Penstock, receiver: Receiver
) -> None:
    await here.agents.webhooks.add(receiver.url, topics=["order.paid"], tenant="poor")
    await block(here)
    with pytest.raises(NotAdmitted):
        await here.agents.webhooks.publish("order.paid", {}, tenant="poor")


@pytest.mark.parametrize("wrong", [{"topic": "a\0b"}, {"topic": "x" * 201}, {"person": "a\0b"}])
async def test_a_delivery_that_cannot_be_written_down_is_not_sent(
    here: Penstock, receiver: Receiver, wrong: dict[str, str]
) -> None:
    made = await here.agents.webhooks.add(receiver.url)
    data = {"webhookId": made.webhook.id, "payload": {}, **wrong}
    with pytest.raises(InvalidOption):
        await here.agents.enqueue("webhook-dispatch", data)


async def test_one_that_cannot_be_written_down_spoils_no_others(
    hooks: Penstock, receiver: Receiver
) -> None:
    webhook = (await hooks.agents.webhooks.add(receiver.url)).webhook
    entries = [
        Entry(
            tenant_id="",
            webhook_id=webhook.id,
            job_id=topic[0],
            n=1,
            attempt=1,
            waits=0,
            message_id="m",
            topic=topic,
            person=None,
            payload="{}",
            status="success",
            at=1,
        )
        for topic in ("a", "b\0", "c")
    ]
    log = hooks.agents.webhooks.log
    await asyncio.gather(*map(log.record, entries), return_exceptions=True)
    assert {"a", "c"} <= {
        job_id for (job_id,) in rows(hooks, "SELECT job_id FROM agents_webhook_deliveries")
    }
