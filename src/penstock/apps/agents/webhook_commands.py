"""`penstock agents webhooks …`: endpoints and deliveries at the terminal."""

from typing import TYPE_CHECKING, Annotated, Any

from penstock.apps.agents.access import agents_in
from penstock.apps.agents.webhooks.records import Webhook
from penstock.apps.agents.webhooks.webhooks import MAX_FAILURES, OVERLAP, Webhooks
from penstock.extension import Shown
from penstock.model.clock import from_iso
from penstock.model.documents import document
from penstock.model.errors import InvalidOption
from penstock.model.wording import ago, counted, span
from penstock.operate.actor import Operator

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

WebhookId = Annotated[str, "The webhook, as `agents webhooks` names it."]
Tenant = Annotated[str | None, "Only those of this tenant."]
Limit = Annotated[int, "At most so many."]
Topics = Annotated[str | None, "With commas between them: job.completed,event.*"]


async def webhooks(app: "Penstock", tenant: Tenant = None, limit: Limit = 100) -> Shown:
    """List webhooks, and how they fare."""
    rows = await agents_in(app).webhooks.list(tenant=tenant, limit=limit)
    now = app.store.clock.now()
    people: Any = [_row(row, now) for row in rows] or "Nobody is told of anything yet."
    return Shown(people, document(rows))


async def webhook(
    app: "Penstock", webhook_id: WebhookId, hours: Annotated[float, "Of so many hours."] = 24
) -> Shown:
    """Show a webhook, and how its deliveries went."""
    found = await agents_in(app).webhooks.get(webhook_id)
    figures = await agents_in(app).webhooks.statistics(webhook_id, hours=hours)
    told = {
        **_row(found, app.store.clock.now()),
        "last hours": f"{figures.succeeded:,} delivered, {figures.failed:,} failed, "
        f"{figures.throttled:,} asked to wait",
        "latency": f"{span(figures.median_latency_ms)}, p95 {span(figures.p95_latency_ms)}",
    }
    return Shown(told, document(found) | {"statistics": document(figures)})


async def add_webhook(
    app: "Penstock",
    actor: str,
    url: Annotated[str, "Where it is told."],
    topics: Topics = None,
    tenant: Annotated[str, "--tenant", "In this tenant."] = "",
    owner: Annotated[str | None, "Who is told if it fails."] = None,
    ordered: Annotated[bool, "One delivery at a time, in order."] = False,
    max_failures: Annotated[int, "Disable it after so many; 0 never does."] = MAX_FAILURES,
) -> Shown:
    """Add a webhook; its secret is shown this once."""
    made = await _own(app, actor).add(
        url,
        topics=_listed(topics) or (),
        tenant=tenant,
        owner=owner,
        ordered=ordered,
        max_failures=max_failures,
    )
    return Shown({"webhook": made.webhook.id, "secret": made.secret}, document(made))


async def change_webhook(
    app: "Penstock",
    actor: str,
    webhook_id: WebhookId,
    url: Annotated[str | None, "Another address."] = None,
    topics: Topics = None,
    owner: Annotated[str | None, "Who is told if it fails."] = None,
    max_failures: Annotated[int | None, "Disable it after so many; 0 never does."] = None,
    enable: Annotated[bool, "--enable", "Have it told again."] = False,
    disable: Annotated[bool, "--disable", "Have it told nothing."] = False,
) -> Shown:
    """Change a webhook: its address, its topics, whether it is told."""
    own = _own(app, actor)
    if enable and disable:
        raise InvalidOption("webhook", "both", "one of --enable and --disable")
    told: dict[str, Any] = {"url": url, "topics": _listed(topics), "max_failures": max_failures}
    change = {name: value for name, value in told.items() if value is not None}
    change |= {} if owner is None else {"owner": owner}
    if not (change or enable or disable):
        raise InvalidOption("change", "none", "--url, --topics, --owner, --enable or --disable")
    changed = await (own.change(webhook_id, **change) if change else own.get(webhook_id))
    if enable or disable:
        changed = await (own.enable(webhook_id) if enable else own.disable(webhook_id))
    return Shown(_row(changed, app.store.clock.now()), document(changed))


async def delete_webhook(app: "Penstock", actor: str, webhook_id: WebhookId) -> Shown:
    """Delete a webhook with its topics and its deliveries."""
    await _own(app, actor).delete(webhook_id)
    return Shown("The webhook is deleted.", {"deleted": webhook_id})


async def rotate_secret(
    app: "Penstock",
    actor: str,
    webhook_id: WebhookId,
    overlap: Annotated[float, "For so many seconds, both secrets sign."] = OVERLAP,
) -> Shown:
    """Give a webhook a new secret, which is shown this once."""
    secret = await _own(app, actor).rotate(webhook_id, overlap=overlap)
    return Shown(secret, {"secret": secret})


async def try_webhook(
    app: "Penstock",
    actor: str,
    webhook_id: WebhookId,
    wait: Annotated[float, "Wait so many seconds for the answer."] = 0,
) -> Shown:
    """Send a test to a webhook; a worker has to be running."""
    handle = await _own(app, actor).test(webhook_id)
    if not wait:
        return Shown(f"The test is on its way: job {handle.id}", {"job": handle.id})
    await handle.result(timeout=wait)
    [delivery, *_] = await agents_in(app).webhooks.deliveries(webhook_id, limit=1)
    return Shown(f"{delivery.status}, {delivery.status_code}", document(delivery))


async def deliveries(
    app: "Penstock",
    webhook_id: WebhookId,
    status: Annotated[str | None, "success, failed or throttled."] = None,
    limit: Limit = 30,
) -> Shown:
    """List what was sent to a webhook, the newest first, and what it answered."""
    rows = await agents_in(app).webhooks.deliveries(webhook_id, status=status, limit=limit)
    now = app.store.clock.now()
    people: Any = [
        {
            "delivery": row.id,
            "topic": row.topic,
            "status": row.status,
            "answer": row.status_code or "–",
            "took": span(row.latency_ms),
            "request": row.n,
            "job": row.job_id,
            "sent": ago(row.created_at, now),
        }
        for row in rows
    ]
    return Shown(people or "Nothing was delivered.", document(rows))


async def replay(
    app: "Penstock",
    actor: str,
    webhook_id: Annotated[str | None, "--webhook", "What this webhook did not take."] = None,
    delivery: Annotated[str | None, "--delivery", "The message of this request."] = None,
    since: Annotated[str | None, "First sent at this time or later: 2026-11-15T03:28Z."] = None,
    until: Annotated[str | None, "First sent before this time."] = None,
    delivered: Annotated[bool, "Also what has arrived."] = False,
) -> Shown:
    """Send again what one request told, or what a webhook missed in a span of time."""
    own = _own(app, actor)
    if delivery is not None and webhook_id is None:
        handle = await own.replay(delivery)
        return Shown(f"The message is sent again: job {handle.id}", {"job": handle.id})
    if webhook_id is None or delivery is not None or since is None:
        raise InvalidOption("replay", "this", "--delivery, or --webhook with --since")
    many = await own.replay_span(
        webhook_id,
        since=from_iso(since),
        until=None if until is None else from_iso(until),
        delivered=delivered,
    )
    return Shown(f"{counted(many, 'message')} sent again.", {"messages": many})


def _own(app: "Penstock", actor: str) -> Webhooks:
    return agents_in(app).webhooks.by(Operator(app, actor).actor)


def _listed(topics: str | None) -> list[str] | None:
    return None if topics is None else topics.replace(",", " ").split()


def _row(row: Webhook, now: int) -> dict[str, Any]:
    return {
        "webhook": row.id,
        "state": "enabled" if row.is_enabled else f"disabled: {row.disabled_for}",
        "done": row.success_count,
        "failed": row.failure_count,
        "last": ago(row.delivered_at, now),
        "topics": ", ".join(row.topics),
        "of": "/".join(filter(None, (row.tenant_id, row.owner))),
        "url": row.url,
    }
