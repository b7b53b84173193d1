"""The types of jobs about memories: consolidated, forgotten, and less important with time."""

from typing import TYPE_CHECKING, Any, Literal

from msgspec import UNSET, Struct, UnsetType

from penstock.app.context import Context
from penstock.apps.agents.worker import Worker
from penstock.model.errors import InvalidOption
from penstock.model.outcome import Snooze

if TYPE_CHECKING:
    from penstock.apps.agents.memory.records import Memory

HOUR = 3_600_000
DAY = 24 * HOUR
PAGE = 2_000
SOON = 30.0
LATEST = 3_600.0


class ConsolidationData(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Which memories to consolidate; without ids, all that are episodic and hold."""

    workspace_id: str | None = None
    user_id: str | None = None
    memory_ids: list[str] | None = None
    consolidation_type: Literal["summarize", "merge"] = "summarize"


class Consolidated(Struct, rename="camel", kw_only=True):
    """What came of it, or the reason why nothing did."""

    consolidated: bool
    reason: str | UnsetType = UNSET
    clusters_processed: int | UnsetType = UNSET
    memories_created: int | UnsetType = UNSET
    source_memories_processed: int | UnsetType = UNSET


class MemoryConsolidation(Worker[ConsolidationData, Consolidated]):
    """Make lasting knowledge of what an agent was told.

    Memories that are alike become one semantic memory, which names its sources; what has changed is
    ended, and the later statement supersedes it. Without `memoryIds`, all episodic memories of the
    tenant, of `userId` or of `workspaceId` are consolidated, those of each user apart.
    """

    name = "memory-consolidation"

    async def process(self, data: ConsolidationData, ctx: Context) -> Consolidated:
        """Consolidate; while the model is away, come back later."""
        from penstock.apps.agents.memory.consolidation import consolidate
        from penstock.apps.agents.model import ModelAway

        try:
            return await consolidate(data, ctx)
        except ModelAway as away:
            grown = min(LATEST, SOON * 2 ** min(ctx.job.snoozes, 12))
            raise Snooze(max(grown, away.after or 0), str(away)) from away


class CleanupData(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """What is forgotten: all that has expired, and what matters less than `minImportance`.

    The latter only if it was neither made nor recalled for `minAge` milliseconds.
    """

    min_importance: float = 0.05
    min_age: int = 30 * DAY
    batch_size: int = 500


class Cleaned(Struct, rename="camel", kw_only=True):
    """How many memories were forgotten and why, and how many edges went with them."""

    deleted: int = 0
    expired: int = 0
    low_importance: int = 0
    edges_deleted: int = 0


class MemoryCleanup(Worker[CleanupData, Cleaned]):
    """Forget memories that have expired or no longer matter, with their vectors and edges.

    A job without a tenant looks at those of all tenants.
    """

    name = "memory-cleanup"

    async def process(self, data: CleanupData, ctx: Context) -> Cleaned:
        """Delete page by page, each in one commit; what was counted is kept with the job."""
        from penstock.apps.agents.memory.rows import delete, memory_of

        if not 1 <= data.batch_size <= 10_000:
            raise InvalidOption("batchSize", data.batch_size, "1 to 10,000")
        as_of = ctx.job.created_at
        done: dict[str, Any] = ctx.checkpoint or {"after": "", "expired": 0, "low": 0, "edges": 0}

        def work(tx: Any) -> tuple[list["Memory"], int]:
            asked = {
                "tenant": ctx.job.tenant_id or None,
                "after": done["after"],
                "as_of": as_of,
                "least": data.min_importance,
                "before": as_of - data.min_age,
                "limit": data.batch_size,
            }
            page = [memory_of(row) for row in tx.agents.rows("forgettable", asked)]
            return page, delete(ctx.app, tx, page)

        while True:
            page, edges = await ctx.transact(work)
            expired = sum(m.expires_at is not None and m.expires_at <= as_of for m in page)
            done["expired"] += expired
            done["low"] += len(page) - expired
            done["edges"] += edges
            if len(page) < data.batch_size:
                break
            done["after"] = page[-1].id
            await ctx.save_checkpoint(done)
        return Cleaned(
            deleted=done["expired"] + done["low"],
            expired=done["expired"],
            low_importance=done["low"],
            edges_deleted=done["edges"],
        )


class DecayData(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """By how much a memory's importance shrinks in each `period` of milliseconds."""

    decay_factor: float = 0.99
    period: int = 6 * HOUR


class Decayed(Struct, rename="camel", kw_only=True):
    """How many memories were looked at, and how many have become less important."""

    processed: int
    decayed: int


class MemoryImportanceDecay(Worker[DecayData, Decayed]):
    """Make memories less important that nobody recalls.

    For every whole period since a memory was last decayed or recalled, its importance is multiplied
    by the factor; the more often it was recalled, the slower. It follows from when that was, so
    that to run it twice changes nothing. A job without a tenant looks at those of all tenants.
    """

    name = "memory-importance-decay"

    async def process(self, data: DecayData, ctx: Context) -> Decayed:
        """Decay page by page, each in one commit."""
        if not 0 < data.decay_factor <= 1:
            raise InvalidOption("decayFactor", data.decay_factor, "a number over 0, up to 1")
        if data.period < 1_000:
            raise InvalidOption("period", data.period, "at least 1000 milliseconds")
        done: dict[str, Any] = ctx.checkpoint or {"after": "", "processed": 0, "decayed": 0}

        def work(tx: Any) -> tuple[str | None, int, int]:
            page = {
                "tenant": ctx.job.tenant_id or None,
                "after": done["after"],
                "limit": PAGE,
            }
            last, count = tx.agents.row("decay_until", page)
            if not count:
                return None, 0, 0
            del page["limit"]
            how = {
                "as_of": ctx.job.created_at,
                "factor": data.decay_factor,
                "period": data.period,
                "last": last,
            }
            return last, count, tx.agents.run("decay_memories", {**page, **how})

        while True:
            last, processed, decayed = await ctx.transact(work)
            done["processed"] += processed
            done["decayed"] += decayed
            if last is None or processed < PAGE:
                return Decayed(processed=done["processed"], decayed=done["decayed"])
            done["after"] = last
            await ctx.save_checkpoint(done)


WORKERS: tuple[type[Worker[Any, Any]], ...] = (
    MemoryConsolidation,
    MemoryCleanup,
    MemoryImportanceDecay,
)
