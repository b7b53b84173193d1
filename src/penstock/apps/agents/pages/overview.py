"""What the overview says of the agent workers: figures, and what is wrong."""

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from penstock.apps.agents.maintenance import health
from penstock.apps.agents.memory.memories import Memories
from penstock.apps.agents.pages.maintenance import count_exceeded
from penstock.apps.agents.pages.webhooks import REASONS, count_disabled
from penstock.extension import Concern
from penstock.model.wording import counted

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

__all__ = ["concerns", "count_active", "count_disabled", "count_exceeded", "count_memories"]


async def count_memories(app: "Penstock") -> int:
    """Count the memories that hold."""
    counts = await Memories(app).counts()
    return sum(count for name, count in counts.items() if name != "superseded")


async def count_active(app: "Penstock") -> int:
    """Count the sessions of agents that are under way."""
    return int(await app.read(lambda tx: tx.agents.value("active_sessions", ())))


async def concerns(app: "Penstock") -> list[Concern]:
    """Tell of tenants that are kept out, and of webhooks that were disabled."""
    found = [replace(each, path="agents/quotas") for each in await health.concerns(app)]
    return [*found, *await _disabled(app)]


async def _disabled(app: "Penstock") -> list[Concern]:
    def question(tx: Any) -> tuple[int, Any]:
        return int(tx.agents.value("webhook_disabled_count")), tx.agents.row(
            "webhook_disabled_newest"
        )

    count, newest = await app.read(question)
    if newest is None:
        return []
    webhook_id, tenant, _, reason = newest
    of = f" of tenant {tenant}" if tenant else ""
    told = f"`{webhook_id}`{of} {REASONS.get(reason, reason)}"
    more = "" if count == 1 else f", and {count - 1:,} more"
    title = f"{counted(count, 'webhook')} disabled"
    return [Concern("degraded", title, f"{told}{more}.", "agents/webhooks")]
