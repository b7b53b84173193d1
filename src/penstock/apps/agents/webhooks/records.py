"""Webhooks, what was delivered to them, and how that went, as people and programs see them."""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from penstock.model.not_found import NotFound
from penstock.model.redact import redact

SUCCESS = "success"
FAILED = "failed"
THROTTLED = "throttled"
"""The receiver asked for patience (429), which speaks for it: this is no failure."""
STATUSES = (SUCCESS, FAILED, THROTTLED)

TOO_MANY_FAILURES = "max_failures_exceeded"
GONE = "gone"
BY_HAND = "disabled_by_hand"


class WebhookNotFound(NotFound):
    """An id that no webhook has."""

    def __init__(self, webhook_id: str) -> None:
        self.webhook_id = webhook_id
        super().__init__(f"There is no webhook {webhook_id!r}; `app.agents.webhooks.list` has all.")


class DeliveryNotFound(NotFound):
    """An id that no delivery has, or that of one whose message is no longer kept."""

    def __init__(self, delivery_id: str) -> None:
        self.delivery_id = delivery_id
        super().__init__(
            f"There is no delivery {delivery_id!r} whose message is kept; it may have been pruned."
        )


class Webhook(Struct, frozen=True, kw_only=True):
    """An endpoint, without its secret; of its own headers only the names are shown.

    `disabled_for` is `max_failures_exceeded`, `gone` (it answered 410) or `disabled_by_hand`.
    """

    id: str
    tenant_id: str
    owner: str | None
    url: str
    topics: tuple[str, ...]
    headers: tuple[str, ...]
    is_enabled: bool
    disabled_for: str | None
    disabled_at: int | None
    is_ordered: bool
    max_failures: int
    success_count: int
    failure_count: int
    mean_latency: float | None
    delivered_at: int | None
    rotating_until: int | None
    """Until then, requests are signed with the former secret as well."""
    metadata: dict[str, Any]
    created_at: int
    updated_at: int


class NewWebhook(Struct, frozen=True, kw_only=True):
    """A webhook with the secret that its receiver checks signatures by: it is shown this once."""

    webhook: Webhook
    secret: str


class Delivery(Struct, frozen=True, kw_only=True):
    """One request: the `n`-th of its job, whose id it carried as X-Delivery-Id.

    `status` is `success`, `failed` or `throttled`; `response_body` is the beginning of the answer.
    """

    id: str
    tenant_id: str
    webhook_id: str
    job_id: str
    n: int
    message_id: str
    topic: str
    status: str
    status_code: int | None
    latency_ms: int | None
    response_body: str | None
    error_message: str | None
    created_at: int


class Statistics(Struct, frozen=True, kw_only=True):
    """How requests to a webhook went since `since`; latencies are of those that succeeded."""

    since: int
    succeeded: int = 0
    failed: int = 0
    throttled: int = 0
    mean_latency_ms: float | None = None
    median_latency_ms: int | None = None
    p95_latency_ms: int | None = None
    last_success_at: int | None = None
    last_failure_at: int | None = None

    @property
    def success_rate(self) -> float | None:
        """The share of requests that succeeded, 0 to 1; None if there were none."""
        ended = self.succeeded + self.failed
        return self.succeeded / ended if ended else None


class Endpoint(Struct, frozen=True):
    """A row of the table, secret and headers included: for those who send."""

    id: str
    tenant_id: str
    owner: str | None
    url: str
    secret: str
    former_secret: str | None
    former_until: int | None
    headers: str
    is_enabled: int
    disabled_for: str | None
    disabled_at: int | None
    is_ordered: int
    max_failures: int
    success_count: int
    failure_count: int
    mean_latency: float | None
    delivered_at: int | None
    metadata: str
    created_at: int
    updated_at: int

    @property
    def own_headers(self) -> Mapping[str, str]:
        """The headers that its requests have beside ours."""
        return msgspec.json.decode(self.headers, type=dict[str, str])

    def shown(self, topics: Sequence[str], now: int) -> Webhook:
        """Return what people may see of it."""
        rotating = self.former_secret is not None and (self.former_until or 0) > now
        return Webhook(
            id=self.id,
            tenant_id=self.tenant_id,
            owner=self.owner,
            url=redact(self.url),
            topics=tuple(topics),
            headers=tuple(self.own_headers),
            is_enabled=bool(self.is_enabled),
            disabled_for=self.disabled_for,
            disabled_at=self.disabled_at,
            is_ordered=bool(self.is_ordered),
            max_failures=self.max_failures,
            success_count=self.success_count,
            failure_count=self.failure_count,
            mean_latency=self.mean_latency,
            delivered_at=self.delivered_at,
            rotating_until=self.former_until if rotating else None,
            metadata=msgspec.json.decode(self.metadata),
            created_at=self.created_at,
            updated_at=self.updated_at,
        )


def endpoint_of(tx: Any, webhook_id: str) -> Endpoint | None:
    """Read the row of a webhook inside a transaction."""
    row = tx.agents.row("webhook_get", (webhook_id,))
    return None if row is None else Endpoint(*row)


def delivery_of(row: Sequence[Any]) -> Delivery:
    """Read a row of the queries about deliveries."""
    return Delivery(**dict(zip(Delivery.__struct_fields__, row, strict=True)))
