"""Webhooks in the dashboard: endpoints, what they were sent, what they answered, and buttons."""

from typing import TYPE_CHECKING, Any

from penstock.apps.agents.access import actor_of, agents_of, given, named_tenant, number
from penstock.apps.agents.webhooks.records import STATUSES, Webhook, WebhookNotFound
from penstock.apps.agents.webhooks.webhooks import MAX_FAILURES, Webhooks
from penstock.extension import Request
from penstock.model.errors import InvalidOption
from penstock.model.wording import counted

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

SHOWN = 100
DELIVERIES = 50
HOUR_MS = 3_600_000
COLOURS = {"success": "completed", "failed": "critical", "throttled": "warning"}
REASONS = {
    "max_failures_exceeded": "failed too often",
    "gone": "answered that it is gone (410)",
    "disabled_by_hand": "was disabled by somebody",
}
SPANS = {"1h": HOUR_MS, "24h": 24 * HOUR_MS, "7d": 7 * 24 * HOUR_MS, "30d": 30 * 24 * HOUR_MS}
"""How far back messages are replayed."""


async def show_webhooks(request: Request) -> dict[str, Any]:
    """List endpoints with how they fare."""
    told = given(request, "tenant", "after")
    after = told.pop("after")
    tenant = named_tenant(request, told["tenant"] or None)
    rows = await _webhooks(request).list(tenant=tenant, after=after, limit=SHOWN)
    return {
        "rows": rows,
        "given": told,
        "after": after,
        "following": rows[-1].id if len(rows) == SHOWN else None,
        "state": _state,
        "reasons": REASONS,
        "bound": request.tenant is not None,
        "max_failures": MAX_FAILURES,
    }


async def add_webhook(request: Request) -> str:
    """Add an endpoint; the sentence that follows is the only one to show its secret."""
    form = request.form
    made = await _webhooks(request).add(
        form.get("url", ""),
        topics=_topics(form.get("topics", "")),
        tenant=request.tenant or form.get("tenant", ""),
        owner=form.get("owner") or None,
        ordered="ordered" in form,
        max_failures=int(number(form, "max_failures") or 0),
    )
    return f"Added. Its secret is shown only now: {made.secret}"


async def show_webhook(request: Request) -> dict[str, Any]:
    """Show one endpoint with its figures and its deliveries, the latest first."""
    webhooks, webhook_id = _webhooks(request), request.path["webhook_id"]
    webhook = await webhooks.get(webhook_id)
    status = request.query.get("status", "")
    before = request.query.get("before", "")
    rows = await webhooks.deliveries(
        webhook_id,
        status=status or None,
        before=int(before) if before.isdecimal() and len(before) < 16 else None,
        limit=DELIVERIES,
    )
    return {
        "webhook": webhook,
        "state": _state,
        "reasons": REASONS,
        "rows": rows,
        "status": status,
        "statuses": STATUSES,
        "colours": COLOURS,
        "before": before,
        "following": rows[-1].created_at if len(rows) == DELIVERIES else None,
        "figures": await webhooks.statistics(webhook_id),
        "spans": list(SPANS),
    }


async def change_webhook(request: Request) -> str:
    """Test, change, rotate, enable, disable, replay: what the buttons of an endpoint do."""
    form, webhooks, webhook_id = request.form, _webhooks(request), request.path["webhook_id"]
    match form.get("action", ""):
        case "test":
            await webhooks.test(webhook_id)
            return "A test is on its way; its answer appears among the deliveries."
        case "enable":
            await webhooks.enable(webhook_id)
            return "The webhook is enabled."
        case "disable":
            await webhooks.disable(webhook_id)
            return "The webhook is disabled."
        case "rotate":
            secret = await webhooks.rotate(webhook_id)
            return (
                "For a day, requests are signed with both secrets. The new one is shown only "
                f"now: {secret}"
            )
        case "change":
            await webhooks.change(
                webhook_id,
                url=form.get("url") or None,
                topics=_topics(form.get("topics", "")),
                owner=form.get("owner") or None,
                ordered="ordered" in form,
                max_failures=int(number(form, "max_failures") or 0),
            )
            return "Saved."
        case "replay":
            await webhooks.replay(form.get("delivery", ""))
            return "The message is sent again."
        case "replay_span":
            span = form.get("span", "")
            if span not in SPANS:
                raise InvalidOption("span", span, f"one of: {', '.join(SPANS)}")
            since = request.app.store.clock.now() - SPANS[span]
            many = await webhooks.replay_span(
                webhook_id, since=since, delivered="delivered" in form
            )
            return f"{counted(many, 'message')} of the last {span} sent again."
        case other:
            actions = "test, enable, disable, rotate, change, replay, replay_span"
            raise InvalidOption("action", other, f"one of: {actions}")


async def show_delete(request: Request) -> dict[str, Any]:
    """Show what goes with an endpoint, before it goes; and afterwards that it is gone."""
    try:
        return {"webhook": await _webhooks(request).get(request.path["webhook_id"])}
    except WebhookNotFound:
        return {"webhook": None}


async def delete(request: Request) -> str:
    """Delete an endpoint."""
    await _webhooks(request).delete(request.path["webhook_id"])
    return "The webhook is deleted, with its deliveries."


async def count_disabled(app: "Penstock") -> int:
    """Count the endpoints that were disabled because their receivers fail, or are gone."""
    count = await app.read(lambda tx: tx.agents.value("webhook_disabled_count"))
    return int(count)


def _state(webhook: Webhook) -> tuple[str, str]:
    """The colour of an endpoint, and how it is in a word."""
    if not webhook.is_enabled:
        by_hand = webhook.disabled_for == "disabled_by_hand"
        return ("paused", "disabled") if by_hand else ("critical", "disabled")
    return ("running", "enabled")


def _topics(text: str) -> list[str]:
    return text.replace(",", " ").split()


def _webhooks(request: Request) -> Webhooks:
    return agents_of(request).webhooks.by(actor_of(request))
