"""`app.agents.webhooks`: endpoints, what they are told of, and what became of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from math import ceil
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from penstock.apps.agents.webhooks.addresses import check_url, networks
from penstock.apps.agents.webhooks.delivery_log import DAY_MS, DeliveryLog, disable
from penstock.apps.agents.webhooks.records import (
    BY_HAND,
    FAILED,
    STATUSES,
    SUCCESS,
    THROTTLED,
    Delivery,
    DeliveryNotFound,
    Endpoint,
    NewWebhook,
    Statistics,
    Webhook,
    WebhookNotFound,
    delivery_of,
    endpoint_of,
)
from penstock.apps.agents.webhooks.signing import Secrets, check_headers
from penstock.apps.agents.webhooks.topics import (
    EVENT,
    JOB,
    TEST,
    Message,
    Publishing,
    Subscriber,
    check_topic,
    delivery,
)
from penstock.model.clock import LATEST
from penstock.model.errors import InvalidOption
from penstock.model.ids import new_id
from penstock.model.options import as_json, check_text
from penstock.model.states import TERMINAL
from penstock.operate.actor import PROGRAM, Actor

if TYPE_CHECKING:
    from penstock.app.handle import JobHandle
    from penstock.app.penstock import Penstock
    from penstock.apps.agents.extension import WebhookSettings

    Handles = list[JobHandle[Any]]
    Deliveries = list[Delivery]
    Topics = list[str]

T = TypeVar("T")

MAX_FAILURES = 10
MOST = 100
REPLAYED_AT_ONCE = 500
OVERLAP = 24 * 3_600.0
LONGEST_OVERLAP = 30 * 24 * 3_600.0
KEEP = object()
"""In place of a value that stays as it is."""


class Webhooks:
    """Endpoints of tenants; an actor that is bound to one sees and changes those of that one."""

    def __init__(self, app: "Penstock", actor: Actor = PROGRAM) -> None:
        self._app = app
        self._actor = actor
        self._settings: WebhookSettings = app.extensions.settings("agents").webhooks

    def by(self, actor: Actor) -> "Webhooks":
        """Return the same on behalf of somebody, who may be bound to a tenant."""
        return Webhooks(self._app, actor)

    @cached_property
    def secrets(self) -> Secrets:
        """Where secrets come from."""
        return Secrets(self._app)

    @cached_property
    def log(self) -> DeliveryLog:
        """Where requests are written down."""
        return DeliveryLog(self._app)

    async def add(
        self,
        url: str,
        *,
        topics: Iterable[str] = (),
        tenant: str | None = None,
        owner: str | None = None,
        secret: str | None = None,
        headers: Mapping[str, str] | None = None,
        ordered: bool = False,
        max_failures: int = MAX_FAILURES,
        metadata: Mapping[str, Any] | None = None,
    ) -> NewWebhook:
        """Add an endpoint; its secret is in the answer, and shown this once.

        `secret` names one of `[penstock.agents.webhooks.secrets]`; without it one is made. With
        `ordered`, deliveries go one at a time and in their order. `max_failures` of 0 never
        disables it.
        """
        of = self._actor.tenant_of(tenant) or ""
        webhook_id = new_id()
        wanted = self._checked(url, headers or {}, max_failures, topics, owner)
        source, shown = (
            self.secrets.first(webhook_id) if secret is None else self.secrets.named(secret, of)
        )
        row = {
            "id": webhook_id,
            "tenant_id": of,
            "owner": owner,
            "url": url,
            "secret": source,
            "headers": as_json("headers", headers or {}),
            "is_ordered": int(ordered),
            "max_failures": max_failures,
            "metadata": as_json("metadata", metadata or {}),
        }

        def work(tx: Any) -> Webhook:
            tx.agents.run("webhook_add", row | {"now": tx.now})
            for topic in wanted:
                tx.agents.run("webhook_subscribe", (webhook_id, topic, of, tx.now))
            return self._shown(tx, webhook_id)

        async with self._actor.doing("webhook.add", f"webhook:{webhook_id}", tenant_id=of):
            return NewWebhook(webhook=await self._app.transact(work), secret=shown)

    async def get(self, webhook_id: str) -> Webhook:
        """Return a webhook; WebhookNotFound if there is none."""
        return await self._app.read(lambda tx: self._shown(tx, webhook_id))

    async def list(
        self, *, tenant: str | None = None, after: str = "", limit: int = MOST
    ) -> list[Webhook]:
        """Return webhooks by id, those of one tenant or all; `after` is the last one seen."""
        chosen = self._actor.tenant_of(tenant)

        def read(tx: Any) -> list[Webhook]:
            bindings = {"tenant_id": chosen, "after": after, "most": _most(limit)}
            found = [Endpoint(*row) for row in tx.agents.rows("webhook_list", bindings)]
            return [one.shown(_topics(tx, one.id), tx.now) for one in found]

        return await self._app.read(read)

    async def change(
        self,
        webhook_id: str,
        *,
        url: str | None = None,
        topics: Iterable[str] | None = None,
        owner: Any = KEEP,
        headers: Mapping[str, str] | None = None,
        ordered: bool | None = None,
        max_failures: int | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Webhook:
        """Change what is named; `topics` replaces all that it subscribes to."""
        wanted = None if topics is None else tuple(topics)

        def work(tx: Any) -> Webhook:
            known = self._own(tx, webhook_id)
            row: dict[str, Any] = {
                "id": webhook_id,
                "url": known.url if url is None else url,
                "owner": known.owner if owner is KEEP else owner,
                "headers": known.headers if headers is None else as_json("headers", headers),
                "is_ordered": known.is_ordered if ordered is None else int(ordered),
                "max_failures": known.max_failures if max_failures is None else max_failures,
                "metadata": known.metadata if metadata is None else as_json("metadata", metadata),
                "now": tx.now,
            }
            told = self._checked(
                row["url"], headers or {}, row["max_failures"], wanted or (), row["owner"]
            )
            tx.agents.run("webhook_change", row)
            if wanted is not None:
                tx.agents.run("webhook_unsubscribe_all", (webhook_id,))
                for topic in told:
                    tx.agents.run("webhook_subscribe", (webhook_id, topic, known.tenant_id, tx.now))
            return self._shown(tx, webhook_id)

        return await self._doing("change", webhook_id, work)

    async def subscribe(self, webhook_id: str, *topics: str) -> Webhook:
        """Have it told of further topics: `job.completed`, `event.*`, or `*` for all."""
        wanted = self._checked_topics(topics)

        def work(tx: Any) -> Webhook:
            known = self._own(tx, webhook_id)
            for topic in wanted:
                tx.agents.run("webhook_subscribe", (webhook_id, topic, known.tenant_id, tx.now))
            return self._shown(tx, webhook_id)

        return await self._doing("subscribe", webhook_id, work)

    async def unsubscribe(self, webhook_id: str, *topics: str) -> Webhook:
        """Have it told of topics no longer."""

        def work(tx: Any) -> Webhook:
            self._own(tx, webhook_id)
            for topic in topics:
                tx.agents.run("webhook_unsubscribe", (webhook_id, topic))
            return self._shown(tx, webhook_id)

        return await self._doing("unsubscribe", webhook_id, work)

    async def rotate(
        self, webhook_id: str, *, overlap: float = OVERLAP, secret: str | None = None
    ) -> str:
        """Replace its secret; for `overlap` seconds requests are signed with both.

        The new one is the answer; `secret` names one of the settings in place of one that is made.
        """
        if not 0 <= overlap <= LONGEST_OVERLAP:
            raise InvalidOption("overlap", overlap, f"0 to {LONGEST_OVERLAP:.0f} seconds")

        def work(tx: Any) -> str:
            known = self._own(tx, webhook_id)
            if secret is None:
                source, shown = self.secrets.next(known)
            else:
                source, shown = self.secrets.named(secret, known.tenant_id)
            until = tx.now + int(overlap * 1000)
            row = {"id": webhook_id, "secret": source, "until": until, "now": tx.now}
            tx.agents.run("webhook_rotate", row)
            return shown

        return await self._doing("rotate", webhook_id, work)

    async def enable(self, webhook_id: str) -> Webhook:
        """Have it told again; failures of before no longer count."""

        def work(tx: Any) -> Webhook:
            self._own(tx, webhook_id)
            tx.agents.run("webhook_enable", {"id": webhook_id, "now": tx.now})
            return self._shown(tx, webhook_id)

        return await self._doing("enable", webhook_id, work)

    async def disable(self, webhook_id: str) -> Webhook:
        """Have it told nothing; what waits for it ends as `webhook_disabled`."""

        def work(tx: Any) -> Webhook:
            known = self._own(tx, webhook_id)
            disable(self._app, tx, webhook_id, known.tenant_id, BY_HAND)
            return self._shown(tx, webhook_id)

        return await self._doing("disable", webhook_id, work)

    async def delete(self, webhook_id: str) -> None:
        """Delete it with its subscriptions and its deliveries."""

        def work(tx: Any) -> None:
            self._own(tx, webhook_id)
            tx.agents.run("webhook_unsubscribe_all", (webhook_id,))
            tx.agents.run("webhook_forget_deliveries", (webhook_id,))
            tx.agents.run("webhook_delete", (webhook_id,))

        await self._doing("delete", webhook_id, work)

    async def send(
        self, webhook_id: str, payload: Any, *, headers: Mapping[str, str] | None = None
    ) -> "JobHandle[Any]":
        """Deliver something to one webhook, whatever it subscribes to."""
        check_headers(headers or {})
        return await self._deliver(webhook_id, {"payload": payload, "headers": headers or {}})

    async def test(self, webhook_id: str) -> "JobHandle[Any]":
        """Deliver a message of the topic `webhook.test`, to a disabled one as well."""
        async with self._actor.doing("webhook.test", f"webhook:{webhook_id}"):
            message = Message(
                topic=TEST, tenant_id="", at=self._app.store.clock.now(), data={"id": webhook_id}
            )
            return await self._deliver(webhook_id, {"payload": message.body, "topic": TEST})

    async def publish(
        self,
        topic: str,
        data: Mapping[str, Any],
        *,
        tenant: str | None = None,
        key: str | None = None,
    ) -> "Handles":
        """Tell all webhooks of a tenant that subscribe to a topic; a handle for each delivery.

        What is published again with the same `key` within a day is not sent again.
        """
        of = self._actor.tenant_of(tenant) or ""

        def work(tx: Any) -> Sequence[Any]:
            return self.publish_in(tx, topic, data, tenant=of, key=key)

        return [*await self._app.transact(work)]

    def publish_in(
        self,
        tx: Any,
        topic: str,
        data: Mapping[str, Any],
        *,
        tenant: str = "",
        key: str | None = None,
    ) -> "Handles":
        """Publish in a transaction of `app.transact`: it is told if that is committed."""
        message = Message(topic=check_topic(topic), tenant_id=tenant, at=tx.now, data=data, key=key)
        return Publishing(self._app, tx).publish(message)

    async def deliveries(
        self,
        webhook_id: str,
        *,
        status: str | None = None,
        before: int | None = None,
        limit: int = MOST,
    ) -> "Deliveries":
        """Return its requests, the newest first: `success`, `failed`, `throttled`, or all."""
        if status is not None and status not in STATUSES:
            raise InvalidOption("status", status, f"one of: {', '.join(STATUSES)}")
        bindings = {
            "webhook_id": webhook_id,
            "status": status,
            "before": LATEST if before is None else before,
            "most": _most(limit),
        }

        def read(tx: Any) -> Sequence[Delivery]:
            self._own(tx, webhook_id)
            return [delivery_of(row) for row in tx.agents.rows("delivery_list", bindings)]

        return [*await self._app.read(read)]

    async def delivery(self, delivery_id: str) -> Delivery:
        """Return one request; DeliveryNotFound if there is none."""
        row = await self._app.read(lambda tx: tx.agents.row("delivery_get", (delivery_id,)))
        found = None if row is None else delivery_of(row)
        if found is None or not self._actor.owns(found.tenant_id):
            raise DeliveryNotFound(delivery_id)
        return found

    async def replay(self, delivery_id: str) -> "JobHandle[Any]":
        """Deliver the message of a request again, under the id it had: receivers see it is one."""

        def work(tx: Any) -> Any:
            return tx.enqueue(self._again(tx, delivery_id))

        async with self._actor.doing("webhook.replay", f"delivery:{delivery_id}"):
            return await self._app.transact(work)

    async def replay_span(
        self, webhook_id: str, *, since: int, until: int | None = None, delivered: bool = False
    ) -> int:
        """Deliver again what was first sent in a span and never arrived; how many messages.

        With `delivered`, what has arrived as well. What is still being tried is left to that. Times
        are UTC milliseconds.
        """
        await self.get(webhook_id)
        count, after = 0, ""
        bindings = {
            "webhook_id": webhook_id,
            "since": since,
            "until": LATEST if until is None else until,
            "whole": int(delivered),
            "most": REPLAYED_AT_ONCE,
        }

        def work(deliveries: Sequence[str], tx: Any) -> None:
            tx.enqueue_many([self._again(tx, each) for each in deliveries])

        async with self._actor.doing("webhook.replay", f"webhook:{webhook_id}"):
            while True:
                asked = bindings | {"after": after}
                rows = await self._app.read(partial(_span, asked))
                jobs = await self._app.store.reader.get([row[2] for row in rows])
                tried = {job.id for job in jobs if job.status not in TERMINAL}
                again = [row[1] for row in rows if row[2] not in tried]
                if again:
                    await self._app.transact(partial(work, again))
                count += len(again)
                if len(rows) < REPLAYED_AT_ONCE:
                    return count
                after = rows[-1][0]

    async def statistics(self, webhook_id: str, *, hours: float = 24) -> Statistics:
        """Return how its requests went in the last hours."""

        def read(tx: Any) -> Statistics:
            self._own(tx, webhook_id)
            since = tx.now - int(hours * DAY_MS / 24)
            rows = tx.agents.rows("delivery_figures", (webhook_id, since))
            figures = {row[0]: row[1:] for row in rows}
            good, bad = figures.get(SUCCESS), figures.get(FAILED)
            many = 0 if good is None else int(good[0])
            return Statistics(
                since=since,
                succeeded=many,
                failed=0 if bad is None else int(bad[0]),
                throttled=int(figures.get(THROTTLED, (0,))[0]),
                mean_latency_ms=None if good is None else float(good[1]),
                median_latency_ms=_latency(tx, webhook_id, since, many, 0.5),
                p95_latency_ms=_latency(tx, webhook_id, since, many, 0.95),
                last_success_at=None if good is None else good[2],
                last_failure_at=None if bad is None else bad[2],
            )

        return await self._app.read(read)

    def _again(self, tx: Any, delivery_id: str) -> Any:
        row = tx.agents.row("delivery_message", (delivery_id,))
        if row is None or row[3] is None or not self._actor.owns(row[5]):
            raise DeliveryNotFound(delivery_id)
        webhook_id, message_id, topic, payload, ordered, tenant, person = row
        told = {
            "payload": msgspec.json.decode(payload),
            "topic": topic,
            "messageId": message_id,
            "person": person,
        }
        return delivery(self._app, tenant, Subscriber(webhook_id, bool(ordered)), told)

    async def _deliver(self, webhook_id: str, told: Mapping[str, Any]) -> "JobHandle[Any]":
        def work(tx: Any) -> Any:
            known = self._own(tx, webhook_id)
            to = Subscriber(known.id, bool(known.is_ordered))
            return tx.enqueue(delivery(self._app, known.tenant_id, to, told))

        return await self._app.transact(work)

    async def _doing(self, what: str, webhook_id: str, work: Callable[[Any], T]) -> T:
        async with self._actor.doing(f"webhook.{what}", f"webhook:{webhook_id}"):
            return await self._app.transact(work)

    def _own(self, tx: Any, webhook_id: str) -> Endpoint:
        """Return its row, if it is the actor's business."""
        found = endpoint_of(tx, webhook_id)
        if found is None or not self._actor.owns(found.tenant_id):
            raise WebhookNotFound(webhook_id)
        return found

    def _shown(self, tx: Any, webhook_id: str) -> Webhook:
        return self._own(tx, webhook_id).shown(_topics(tx, webhook_id), tx.now)

    def _checked(
        self,
        url: str,
        headers: Mapping[str, str],
        max_failures: int,
        topics: Iterable[str],
        owner: str | None,
    ) -> "Topics":
        """Refuse what an endpoint may not have; return its topics, each once."""
        if owner is not None:
            check_text("owner", owner)
        check_url(url, networks(self._settings.allow))
        check_headers(headers)
        if not 0 <= max_failures <= 1_000_000:
            raise InvalidOption("max_failures", max_failures, "0 (never) to 1,000,000")
        return self._checked_topics(topics)

    def _checked_topics(self, topics: Iterable[str]) -> "Topics":
        if isinstance(topics, str):
            raise InvalidOption("topics", topics, "a list of topics")
        checked = [check_topic(topic, pattern=True) for topic in dict.fromkeys(topics)]
        for kind, told in ((JOB, self._settings.jobs), (EVENT, self._settings.events)):
            unheard = [topic for topic in checked if topic.partition(".")[0] == kind]
            if unheard and not told:
                expected = f"left out while [penstock.agents.webhooks] has {kind}s = false"
                raise InvalidOption("topic", unheard[0], expected)
        return checked


def _topics(tx: Any, webhook_id: str) -> list[str]:
    return [row[0] for row in tx.agents.rows("webhook_topics", (webhook_id,))]


def _latency(tx: Any, webhook_id: str, since: int, many: int, share: float) -> int | None:
    if not many:
        return None
    bindings = {"webhook_id": webhook_id, "since": since, "skipped": ceil(many * share) - 1}
    found: int | None = tx.agents.value("delivery_latency", bindings)
    return found


def _most(limit: int) -> int:
    if not 1 <= limit <= 1_000:
        raise InvalidOption("limit", limit, "1 to 1000")
    return limit


def _span(asked: Mapping[str, Any], tx: Any) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = tx.agents.rows("delivery_span", asked)
    return found
