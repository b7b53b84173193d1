"""`app.agents.webhooks`: endpoints, their secrets, replays and figures."""

from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.app.keys import NoKey
from penstock.apps.agents.webhooks.addresses import Refused
from penstock.apps.agents.webhooks.records import DeliveryNotFound, WebhookNotFound
from penstock.apps.agents.webhooks.upkeep import prune
from penstock.config import Settings
from penstock.model.errors import ForeignTenant, InvalidOption
from penstock.operate.actor import Actor, Operator
from penstock.testing import FakeClock, drain
from penstock.worker.worker import Worker
from tests.apps.agents.raw import rows
from tests.apps.agents.webhooks.conftest import hooks_app
from tests.apps.agents.webhooks.receiver import Receiver, answering

URL = "https://example.com/hooks"
WORD = "-".join(("not", "a", "word", "to", "guess"))
DAY = 86_400


async def test_a_webhook_is_added_read_changed_and_deleted(hooks: Penstock) -> None:
    webhooks = hooks.agents.webhooks
    new = await webhooks.add(
        URL, topics=["order.paid", "job.*"], tenant="north", owner="ann", metadata={"a": 1}
    )
    known = await webhooks.get(new.webhook.id)
    assert known == new.webhook
    assert (known.topics, known.owner, known.tenant_id) == (("job.*", "order.paid"), "ann", "north")
    changed = await webhooks.change(
        known.id, url=f"{URL}/2", topics=["*"], max_failures=0, ordered=True, owner=None
    )
    assert (changed.url, changed.topics, changed.owner) == (f"{URL}/2", ("*",), None)
    assert (changed.max_failures, changed.is_ordered, changed.metadata) == (0, True, {"a": 1})
    assert (await webhooks.subscribe(known.id, "order.*")).topics == ("*", "order.*")
    assert (await webhooks.unsubscribe(known.id, "*")).topics == ("order.*",)
    other = await webhooks.add(URL)
    assert [one.id for one in await webhooks.list()] == [known.id, other.webhook.id]
    assert [one.id for one in await webhooks.list(tenant="north")] == [known.id]
    assert [one.id for one in await webhooks.list(after=known.id)] == [other.webhook.id]
    await webhooks.delete(known.id)
    with pytest.raises(WebhookNotFound):
        await webhooks.get(known.id)
    assert rows(hooks, "SELECT count(*) FROM agents_subscriptions") == [(0,)]


async def test_no_secret_is_in_the_database(here: Penstock) -> None:
    new = await here.agents.webhooks.add(URL)
    fresh = await here.agents.webhooks.rotate(new.webhook.id)
    told = str(rows(here, "SELECT * FROM agents_webhooks"))
    for secret in (new.secret, fresh):
        assert secret.removeprefix("whsec_") not in told
    assert "derived:2" in told


async def test_processes_that_share_a_folder_derive_the_same_secrets(
    tmp_path: Path, clock: FakeClock
) -> None:
    url, folder = f"sqlite:///{tmp_path}/work.db", tmp_path / "agents"
    async with hooks_app(url, folder, clock) as app:
        new = await app.agents.webhooks.add(URL)
    assert (folder / "webhooks.key").stat().st_mode & 0o777 == 0o600
    async with hooks_app(url, folder, clock) as app:
        source, secret = app.agents.webhooks.secrets.first(new.webhook.id)
        assert (source, secret) == ("derived:1", new.secret)


async def test_the_key_of_secrets_may_be_kept_elsewhere(
    tmp_path: Path, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOOKS_KEY", WORD)
    url, folder = f"sqlite:///{tmp_path}/work.db", tmp_path / "agents"
    async with hooks_app(url, folder, clock, key="env:HOOKS_KEY") as app:
        new = await app.agents.webhooks.add(URL)
        assert not folder.exists()
        monkeypatch.setenv("HOOKS_KEY", f"{WORD}2")
    async with hooks_app(url, folder, clock, key="env:HOOKS_KEY") as app:
        assert app.agents.webhooks.secrets.first(new.webhook.id)[1] != new.secret


async def test_without_a_place_for_the_key_somebody_has_to_name_one(
    postgres_store_url: str, clock: FakeClock
) -> None:
    settings = Settings(extension={"agents": {"schedules": False}})
    async with Penstock(
        postgres_store_url, extensions=["agents"], settings=settings, clock=clock
    ) as app:
        with pytest.raises(NoKey, match=r"under \[penstock.agents.webhooks\]"):
            await app.agents.webhooks.add(URL)


async def test_secrets_of_the_settings_are_for_their_tenant(
    tmp_path: Path, clock: FakeClock, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", WORD)
    secrets = {"shop": {"key": "env:SHOP_TOKEN", "tenant": "north"}}
    url, folder = f"sqlite:///{tmp_path}/work.db", tmp_path / "agents"
    async with hooks_app(url, folder, clock, secrets=secrets) as app:
        webhooks = app.agents.webhooks
        headers = {"Authorization": "secret:shop"}
        new = await webhooks.add(receiver.url, tenant="north", secret="shop", headers=headers)
        assert new.secret == WORD
        await webhooks.send(new.webhook.id, {})
        await drain(app)
        assert receiver.got[0].headers["Authorization"] == WORD
        assert new.webhook.headers == ("Authorization",)
        with pytest.raises(InvalidOption, match="'secret' is 'shop'"):
            await webhooks.add(receiver.url, tenant="south", secret="shop")
        thief = await webhooks.add(receiver.url, tenant="south", headers=headers)
        await webhooks.send(thief.webhook.id, {})
        await drain(app)
        assert len(receiver.got) == 1
    assert WORD.encode() not in (tmp_path / "work.db").read_bytes()


async def test_a_secret_in_a_header_is_not_taken_in_plain_text(here: Penstock) -> None:
    with pytest.raises(InvalidOption, match="secret:NAME"):
        await here.agents.webhooks.add(URL, headers={"Authorization": f"Bearer {WORD}"})


@pytest.mark.parametrize("topic", ["", "order.", ".paid", "or der", "order.*.paid", "*.paid", "**"])
async def test_what_is_no_topic_is_refused(here: Penstock, topic: str) -> None:
    with pytest.raises(InvalidOption, match="'topic'"):
        await here.agents.webhooks.add(URL, topics=[topic])
    with pytest.raises(InvalidOption, match="'topic'"):
        await here.agents.webhooks.publish(topic, {})


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"owner": "a\0b"}, "without NUL"),
        ({"metadata": {"a": object()}}, "something JSON can hold"),
    ],
)
async def test_what_no_store_can_hold_is_refused(
    here: Penstock, wrong: dict[str, Any], told: str
) -> None:
    webhooks = here.agents.webhooks
    with pytest.raises(InvalidOption, match=told):
        await webhooks.add("https://example.com/hook", **wrong)
    assert await webhooks.list() == []
    made = await webhooks.add("https://example.com/hook", owner="ann")
    with pytest.raises(InvalidOption, match=told):
        await webhooks.change(made.webhook.id, **wrong)
    assert await webhooks.get(made.webhook.id) == made.webhook


async def test_private_addresses_are_refused_when_a_webhook_is_added(here: Penstock) -> None:
    for url in ("https://10.0.0.1/", "https://[::ffff:a00:1]/", "https://[fd00::1]/"):
        with pytest.raises(Refused, match="not a public one"):
            await here.agents.webhooks.add(url)


async def test_whoever_is_bound_to_a_tenant_sees_and_changes_its_own(here: Penstock) -> None:
    everybody = here.agents.webhooks
    foreign = await everybody.add(URL, tenant="south")
    north = everybody.by(Actor("ann", "north"))
    own = await north.add(URL)
    assert own.webhook.tenant_id == "north"
    assert [one.id for one in await north.list()] == [own.webhook.id]
    for attempt in (north.get, north.enable, north.rotate, north.delete, north.test):
        with pytest.raises(WebhookNotFound):
            await attempt(foreign.webhook.id)
    with pytest.raises(ForeignTenant):
        await north.add(URL, tenant="south")


async def test_what_people_do_is_on_record(here: Penstock) -> None:
    webhooks = here.agents.webhooks.by(Operator(here, "user:ann").actor)
    new = await webhooks.add(URL)
    await webhooks.rotate(new.webhook.id)
    entries = await here.store.audit.page(0, 10)
    assert [entry.action for entry in entries] == ["webhook.add", "webhook.rotate"]
    assert new.secret not in str(entries)


async def test_a_test_reaches_a_disabled_webhook_as_well(
    here: Penstock, receiver: Receiver
) -> None:
    new = await here.agents.webhooks.add(receiver.url)
    await here.agents.webhooks.disable(new.webhook.id)
    await here.agents.webhooks.test(new.webhook.id)
    await drain(here)
    assert b'"type":"webhook.test"' in receiver.got[0].body


async def test_a_message_is_replayed_under_its_own_id(hooks: Penstock, receiver: Receiver) -> None:
    webhooks = hooks.agents.webhooks
    new = await webhooks.add(receiver.url)
    receiver.behaviours = [answering(404)]
    await webhooks.send(new.webhook.id, {"n": 1})
    await drain(hooks)
    [failed] = await webhooks.deliveries(new.webhook.id)
    again = await webhooks.replay(failed.id)
    await drain(hooks)
    first, second = receiver.got
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert (first.delivery, second.delivery) == (failed.job_id, again.id)
    with pytest.raises(DeliveryNotFound):
        await webhooks.replay("01NOSUCH-1")


async def test_of_a_span_what_never_arrived_is_replayed_or_all(
    hooks: Penstock, receiver: Receiver, clock: FakeClock
) -> None:
    webhooks = hooks.agents.webhooks
    new = await webhooks.add(receiver.url)
    receiver.behaviours = [answering(404), answering(200), answering(404)]
    times = []
    for n in range(3):
        times.append(clock.now())
        await webhooks.send(new.webhook.id, {"n": n})
        await drain(hooks)
        clock.advance(60)
    receiver.got.clear()
    assert await webhooks.replay_span(new.webhook.id, since=times[0], until=times[2]) == 1
    await drain(hooks)
    assert [request.body for request in receiver.got] == [b'{"n":0}']
    assert await webhooks.replay_span(new.webhook.id, since=times[0], until=times[2]) == 0
    assert await webhooks.replay_span(new.webhook.id, since=times[1]) == 1
    assert await webhooks.replay_span(new.webhook.id, since=0, until=times[2], delivered=True) == 2


async def test_what_is_still_being_tried_is_not_replayed(
    hooks: Penstock, receiver: Receiver, clock: FakeClock
) -> None:
    webhooks = hooks.agents.webhooks
    new = await webhooks.add(receiver.url)
    receiver.behaviours = [answering(503), answering(200)]
    await webhooks.send(new.webhook.id, {"n": 0})
    await Worker(hooks, burst=True, upkeep=False).run()
    assert len(receiver.got) == 1, "it waits for its second attempt"
    assert await webhooks.replay_span(new.webhook.id, since=0) == 0
    clock.advance(3_600)
    await drain(hooks)
    assert len(receiver.got) == 2


async def test_statistics_say_how_it_went(
    hooks: Penstock, receiver: Receiver, clock: FakeClock
) -> None:
    webhooks = hooks.agents.webhooks
    new = await webhooks.add(receiver.url)
    assert (await webhooks.statistics(new.webhook.id)).success_rate is None
    receiver.behaviours = [answering(200), answering(200), answering(404), answering(429)]
    for n in range(4):
        await webhooks.send(new.webhook.id, {"n": n})
        await drain(hooks)
    found = await webhooks.statistics(new.webhook.id)
    assert (found.succeeded, found.failed, found.throttled) == (2, 1, 1)
    assert found.success_rate == pytest.approx(2 / 3)
    assert found.last_success_at == found.last_failure_at == clock.now()
    assert found.p95_latency_ms is not None
    clock.advance(2 * DAY)
    assert (await webhooks.statistics(new.webhook.id)).succeeded == 0
    assert [one.status for one in await webhooks.deliveries(new.webhook.id, status="failed")] == [
        "failed"
    ]


async def test_deliveries_are_kept_for_a_month(
    here: Penstock, receiver: Receiver, clock: FakeClock
) -> None:
    new = await here.agents.webhooks.add(receiver.url)
    await here.agents.webhooks.send(new.webhook.id, {})
    await drain(here)
    clock.advance(29 * DAY)
    await here.agents.webhooks.send(new.webhook.id, {})
    await drain(here)
    clock.advance(2 * DAY)
    await prune(here)
    assert rows(here, "SELECT count(*) FROM agents_webhook_deliveries") == [(1,)]
