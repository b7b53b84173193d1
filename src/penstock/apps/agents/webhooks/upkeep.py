"""What is done about webhooks again and again: their owners are told, old deliveries go."""

from typing import TYPE_CHECKING, Any

from penstock.apps.agents.webhooks.delivery_log import DAY_MS
from penstock.model.alert import Reading

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.extension import Rule


async def disabled(app: "Penstock", _: "Rule") -> Reading:
    """Count the webhooks that were disabled because their receivers fail, or are gone."""

    def read(tx: Any) -> Reading:
        count = int(tx.agents.value("webhook_disabled_count"))
        newest = tx.agents.row("webhook_disabled_newest")
        if newest is None:
            return Reading(count)
        webhook_id, tenant, owner, reason = newest
        of = f" of {owner}" if owner else ""
        within = f" (tenant {tenant})" if tenant else ""
        return Reading(count, f"the newest is {webhook_id}{of}{within}: {reason}", cause=webhook_id)

    return await app.read(read)


async def prune(app: "Penstock") -> None:
    """Delete requests that were made longer ago than they are kept."""
    kept_ms = app.extensions.settings("agents").webhooks.keep_days * DAY_MS
    while await app.transact(lambda tx: tx.agents.run("delivery_prune", (tx.now - kept_ms,))):
        pass


def tells_of_jobs(app: "Penstock") -> bool:
    """Say whether what becomes of jobs has topics here."""
    told: bool = app.extensions.settings("agents").webhooks.jobs
    return told
