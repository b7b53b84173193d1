"""What happens to jobs and events, and what a program publishes, becomes webhooks."""

import json
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.apps.agents.webhooks.topics import Message, patterns_of
from penstock.events import catch_up
from penstock.model.errors import InvalidOption
from penstock.testing import FakeClock, drain, tell_followers
from tests.apps.agents.raw import rows
from tests.apps.agents.webhooks.conftest import hooks_app
from tests.apps.agents.webhooks.receiver import Receiver


def told(receiver: Receiver) -> list[dict[str, Any]]:
    return [json.loads(request.body) for request in receiver.got]


def test_a_message_is_meant_by_its_topic_and_all_above_it() -> None:
    message = Message(topic="a.b.c", tenant_id="", at=0, data={}, narrow="a.b.c.d")
    assert patterns_of(message) == ["a.b.c", "a.b.c.*", "a.b.c.d", "a.*", "a.b.*", "*"]


async def test_who_subscribes_is_told_once_and_only_within_the_tenant(
    hooks: Penstock, receiver: Receiver
) -> None:
    webhooks = hooks.agents.webhooks
    wanted = await webhooks.add(receiver.url, topics=["order.paid", "order.*"], tenant="north")
    await webhooks.add(receiver.url, topics=["order.sent"], tenant="north")
    await webhooks.add(receiver.url, topics=["order.paid"], tenant="south")
    off = await webhooks.add(receiver.url, topics=["order.paid"], tenant="north")
    await webhooks.disable(off.webhook.id)
    [handle] = await webhooks.publish("order.paid", {"n": 1}, tenant="north")
    await drain(hooks)
    [request] = receiver.got
    assert (request.delivery, request.headers["X-Webhook-Id"]) == (handle.id, wanted.webhook.id)
    assert json.loads(request.body) == {
        "type": "order.paid",
        "timestamp": "2026-01-01T00:00:00.000Z",
        "data": {"n": 1},
    }
    assert (await hooks.get(handle.id)).tenant_id == "north"


async def test_what_is_published_with_a_key_is_sent_once(
    here: Penstock, receiver: Receiver, clock: FakeClock
) -> None:
    await here.agents.webhooks.add(receiver.url, topics=["order.paid"])
    for _ in range(2):
        await here.agents.webhooks.publish("order.paid", {}, key="7")
        await drain(here)
    await here.agents.webhooks.publish("order.paid", {}, key="8")
    await drain(here)
    assert len(receiver.got) == 2


async def test_what_is_published_in_a_transaction_is_told_if_that_is_committed(
    here: Penstock, receiver: Receiver
) -> None:
    await here.agents.webhooks.add(receiver.url, topics=["order.paid"])

    def failing(tx: Any) -> None:
        here.agents.webhooks.publish_in(tx, "order.paid", {"n": 1})
        raise LookupError("no such order")

    with pytest.raises(LookupError):
        await here.transact(failing)
    await here.transact(lambda tx: here.agents.webhooks.publish_in(tx, "order.paid", {"n": 2}))
    await drain(here)
    assert [each["data"] for each in told(receiver)] == [{"n": 2}]


async def test_what_becomes_of_jobs_is_told(hooks: Penstock, receiver: Receiver) -> None:
    @hooks.job(max_retries=0)
    async def divide(by: int) -> float:
        return 1 / by

    await hooks.agents.webhooks.add(receiver.url, topics=["job.completed.divide"], tenant="north")
    await hooks.agents.webhooks.add(receiver.url, topics=["job.*"], tenant="south")
    await tell_followers(hooks)
    good = await divide.options(tenant="north").enqueue(2)
    bad = await divide.options(tenant="south").enqueue(0)
    worse = await divide.options(tenant="south", max_retries=1).enqueue(0)
    await divide.enqueue(1)
    await drain(hooks)
    assert await tell_followers(hooks) == 4
    await drain(hooks)
    assert sorted((each["type"], each["data"]["id"]) for each in told(receiver)) == [
        ("job.completed", good.id),
        ("job.dead_letter", bad.id),
        ("job.failed", worse.id),
    ]
    assert told(receiver)[0]["data"].keys() == {"id", "type", "queue", "status"}


async def test_a_follower_that_is_told_twice_sends_once(
    here: Penstock, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    @here.job
    async def greet() -> None: ...

    await here.agents.webhooks.add(receiver.url, topics=["job.completed"])
    await tell_followers(here)
    await greet.enqueue()
    await drain(here)
    confirm = here.store.changes.confirm

    async def lost(*_: Any) -> None:
        raise ConnectionError("lost")

    monkeypatch.setattr(here.store.changes, "confirm", lost)
    with pytest.raises(ConnectionError):
        await tell_followers(here)
    await drain(here)
    monkeypatch.setattr(here.store.changes, "confirm", confirm)
    await tell_followers(here)
    await drain(here)
    assert len(receiver.got) == 1


async def test_deliveries_are_not_told_of_themselves(here: Penstock, receiver: Receiver) -> None:
    await here.agents.webhooks.add(receiver.url, topics=["*"])
    await tell_followers(here)
    await here.agents.webhooks.publish("order.paid", {})
    for _ in range(3):
        await drain(here)
        await tell_followers(here)
    assert [each["type"] for each in told(receiver)] == ["order.paid"]


async def test_events_are_told_once_and_a_rebuild_tells_nothing(
    hooks: Penstock, receiver: Receiver
) -> None:
    await hooks.agents.webhooks.add(receiver.url, topics=["event.order_paid"], tenant="north")
    for kind, tenant in (("order_paid", "north"), ("order_sent", "north"), ("order_paid", "")):
        await hooks.events.append(
            kind, session_id="s1", payload={"n": 1}, tenant_id=tenant, person="ada"
        )
    await catch_up(hooks, "agents.webhooks")
    await drain(hooks)
    await hooks.events.pipeline.rebuild("agents.webhooks")
    await drain(hooks)
    [body] = told(receiver)
    assert (body["type"], body["data"]["payload"]) == ("event.order_paid", {"n": 1})
    assert rows(hooks, "SELECT person FROM agents_webhook_deliveries") == [("ada",)]


async def test_topics_that_are_switched_off_cost_nothing_and_are_refused(
    tmp_path: Path, clock: FakeClock, receiver: Receiver
) -> None:
    url, folder = f"sqlite:///{tmp_path}/work.db", tmp_path / "agents"
    async with hooks_app(url, folder, clock) as app:
        await tell_followers(app)
        assert [one.name for one in await app.followers.states()] == ["agents.webhooks"]
        assert "agents.webhooks" in app.consumer.known()
    async with hooks_app(url, folder, clock, jobs=False, events=False) as app:
        await tell_followers(app)
        assert await app.followers.states() == []
        assert "agents.webhooks" not in app.consumer.known()
        for topic in ("job.completed", "event.*"):
            with pytest.raises(InvalidOption, match="left out while"):
                await app.agents.webhooks.add(receiver.url, topics=[topic])


async def test_with_jobs_on_redis_the_tables_are_beside_them(
    valkey_url: str, tmp_path: Path, clock: FakeClock, receiver: Receiver
) -> None:
    tables = f"sqlite:///{tmp_path}/tables.db"
    app = hooks_app(valkey_url, tmp_path / "agents", clock, tables=tables)

    @app.job
    async def greet() -> None: ...

    async with app:
        await app.agents.webhooks.add(receiver.url, topics=["*"])
        await tell_followers(app)
        await app.agents.webhooks.publish("order.paid", {})
        await greet.enqueue()
        await drain(app)
        await tell_followers(app)
        await drain(app)
        assert [each["type"] for each in told(receiver)] == ["order.paid", "job.completed"]
        [webhook] = await app.agents.webhooks.list()
        assert webhook.success_count == 2
