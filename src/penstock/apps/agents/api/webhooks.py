"""Webhooks over HTTP: endpoints, their topics and secrets, and what was delivered to them."""

from datetime import datetime
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType

from penstock.apps.agents.access import actor_of, agents_of, ms, named_tenant
from penstock.apps.agents.webhooks.records import Delivery, NewWebhook, Statistics, Webhook
from penstock.apps.agents.webhooks.webhooks import MAX_FAILURES, OVERLAP, Webhooks
from penstock.extension import Request
from penstock.model.documents import document, documented
from penstock.model.errors import InvalidOption

Limit = Annotated[int, Meta(ge=1, le=100)]
Topics = Annotated[list[str], Meta(examples=[["job.completed", "event.*"]])]

WebhookDocument: Any = documented(Webhook)
NewWebhookDocument: Any = documented(NewWebhook)
DeliveryDocument: Any = documented(Delivery)
StatisticsDocument: Any = documented(Statistics, "DeliveryStatistics")


class WebhookList(Struct, kw_only=True):
    """A page of webhooks, by id."""

    webhooks: list[WebhookDocument]  # pyright: ignore[reportInvalidTypeForm]
    next: Annotated[str | None, Meta(description="Go on with `after=`; absent at the end.")]


class WantedWebhooks(Struct, kw_only=True):
    """Which webhooks are asked for."""

    tenant: str | None = None
    after: Annotated[str, Meta(description="Go on after `next` of the page before.")] = ""
    limit: Limit = 50


class WebhookToAdd(Struct, kw_only=True, forbid_unknown_fields=True):
    """An endpoint; `secret` names one of the settings, without it one is made."""

    url: Annotated[str, Meta(max_length=2_000, examples=["https://example.com/hooks"])]
    topics: Topics = []
    tenant: str | None = None
    owner: str | None = None
    secret: str | None = None
    headers: dict[str, str] = {}
    ordered: bool = False
    max_failures: int = MAX_FAILURES
    metadata: dict[str, Any] = {}


class WebhookChange(Struct, kw_only=True, forbid_unknown_fields=True):
    """What is changed of an endpoint; what is not said stays."""

    url: str | None = None
    topics: list[str] | None = None
    owner: str | UnsetType | None = UNSET
    headers: dict[str, str] | None = None
    ordered: bool | None = None
    max_failures: int | None = None
    metadata: dict[str, Any] | None = None


class Rotation(Struct, kw_only=True, forbid_unknown_fields=True):
    """For how many seconds requests are signed with both secrets; a name of the settings."""

    overlap: float = OVERLAP
    secret: str | None = None


MaybeRotation = Rotation | None


class Secret(Struct, kw_only=True):
    """The new secret; it is shown this once."""

    secret: str


class Enqueued(Struct, kw_only=True):
    """The job that does it."""

    job_id: str


class DeliveryList(Struct, kw_only=True):
    """A page of requests, the newest first."""

    deliveries: list[DeliveryDocument]  # pyright: ignore[reportInvalidTypeForm]
    next: Annotated[datetime | None, Meta(description="Go on with `before=`; absent at the end.")]


class WantedDeliveries(Struct, kw_only=True):
    """Which requests are asked for."""

    status: Annotated[str | None, Meta(description="success, failed or throttled.")] = None
    before: Annotated[datetime | None, Meta(description="Made before this time.")] = None
    limit: Limit = 50


class WantedFigures(Struct, kw_only=True):
    """Of how many hours figures are asked for."""

    hours: Annotated[float, Meta(gt=0, le=8_784)] = 24


class ReplaySpan(Struct, kw_only=True, forbid_unknown_fields=True):
    """A span whose messages are sent again: those that never arrived, or all."""

    since: datetime
    until: datetime | None = None
    delivered: bool = False


class Replayed(Struct, kw_only=True):
    """How many messages are sent again."""

    messages: int


class Sending(Struct, kw_only=True, forbid_unknown_fields=True):
    """Something to be delivered to one endpoint."""

    payload: Any
    headers: dict[str, str] = {}


class Publication(Struct, kw_only=True, forbid_unknown_fields=True):
    """Something to be told to all that subscribe to a topic; a `key` is told once a day."""

    topic: Annotated[str, Meta(examples=["order.shipped"])]
    data: dict[str, Any]
    tenant: str | None = None
    key: str | None = None


class Published(Struct, kw_only=True):
    """The jobs that deliver it, one for each endpoint."""

    job_ids: list[str]


async def list_webhooks(request: Request) -> dict[str, Any]:
    """List webhooks by id."""
    wanted: WantedWebhooks = request.query
    rows = await _webhooks(request).list(
        tenant=named_tenant(request, wanted.tenant), after=wanted.after, limit=wanted.limit
    )
    more = rows[-1].id if len(rows) == wanted.limit else None
    return {"webhooks": document(rows), "next": more}


async def add_webhook(request: Request) -> Any:
    """Add an endpoint; its secret is in the answer, and shown this once."""
    told: WebhookToAdd = request.body
    made = await _webhooks(request).add(
        told.url,
        topics=told.topics,
        tenant=named_tenant(request, told.tenant) or "",
        owner=told.owner,
        secret=told.secret,
        headers=told.headers,
        ordered=told.ordered,
        max_failures=told.max_failures,
        metadata=told.metadata,
    )
    return document(made)


async def get_webhook(request: Request) -> Any:
    """One webhook, without its secret."""
    return document(await _webhooks(request).get(request.path["webhook_id"]))


async def change_webhook(request: Request) -> Any:
    """Change a webhook; `topics` replaces all that it subscribes to."""
    change: WebhookChange = request.body
    if change == WebhookChange():
        raise InvalidOption("change", "none", "an address, topics or another field")
    owner = {} if change.owner is UNSET else {"owner": change.owner}
    changed = await _webhooks(request).change(
        request.path["webhook_id"],
        url=change.url,
        topics=change.topics,
        headers=change.headers,
        ordered=change.ordered,
        max_failures=change.max_failures,
        metadata=change.metadata,
        **owner,
    )
    return document(changed)


async def delete_webhook(request: Request) -> dict[str, bool]:
    """Delete a webhook with its subscriptions and its deliveries."""
    await _webhooks(request).delete(request.path["webhook_id"])
    return {"removed": True}


async def rotate_webhook(request: Request) -> dict[str, str]:
    """Replace the secret of a webhook; for a while requests are signed with both."""
    told: Rotation = request.body or Rotation()
    secret = await _webhooks(request).rotate(
        request.path["webhook_id"], overlap=told.overlap, secret=told.secret
    )
    return {"secret": secret}


async def enable_webhook(request: Request) -> Any:
    """Have a webhook told again; failures of before no longer count."""
    return document(await _webhooks(request).enable(request.path["webhook_id"]))


async def disable_webhook(request: Request) -> Any:
    """Have a webhook told nothing."""
    return document(await _webhooks(request).disable(request.path["webhook_id"]))


async def test_webhook(request: Request) -> dict[str, str]:
    """Send a message of the topic `webhook.test`."""
    return {"job_id": (await _webhooks(request).test(request.path["webhook_id"])).id}


async def send_to_webhook(request: Request) -> dict[str, str]:
    """Deliver something to one webhook, whatever it subscribes to."""
    told: Sending = request.body
    sent = await _webhooks(request).send(
        request.path["webhook_id"], told.payload, headers=told.headers
    )
    return {"job_id": sent.id}


async def publish_topic(request: Request) -> dict[str, list[str]]:
    """Tell all webhooks of a tenant that subscribe to a topic."""
    told: Publication = request.body
    handles = await _webhooks(request).publish(
        told.topic, told.data, tenant=named_tenant(request, told.tenant) or "", key=told.key
    )
    return {"job_ids": [handle.id for handle in handles]}


async def list_deliveries(request: Request) -> dict[str, Any]:
    """Requests to a webhook, the newest first, with the beginning of each answer."""
    wanted: WantedDeliveries = request.query
    rows = await _webhooks(request).deliveries(
        request.path["webhook_id"],
        status=wanted.status,
        before=ms(wanted.before),
        limit=wanted.limit,
    )
    told = document(rows)
    return {
        "deliveries": told,
        "next": told[-1]["created_at"] if len(rows) == wanted.limit else None,
    }


async def read_delivery_statistics(request: Request) -> Any:
    """How requests to a webhook went in the last hours."""
    wanted: WantedFigures = request.query
    return document(
        await _webhooks(request).statistics(request.path["webhook_id"], hours=wanted.hours)
    )


async def replay_delivery(request: Request) -> dict[str, str]:
    """Send the message of a request again, under the id it had."""
    return {"job_id": (await _webhooks(request).replay(request.path["delivery_id"])).id}


async def replay_deliveries(request: Request) -> dict[str, int]:
    """Send again what was first sent in a span of time."""
    told: ReplaySpan = request.body
    many = await _webhooks(request).replay_span(
        request.path["webhook_id"],
        since=ms(told.since) or 0,
        until=ms(told.until),
        delivered=told.delivered,
    )
    return {"messages": many}


def _webhooks(request: Request) -> Webhooks:
    return agents_of(request).webhooks.by(actor_of(request))
