"""The types of jobs about vectors: embedding texts, and keeping indexes in order.

A job of index-optimization, index-rebalance or embedding-reindex without a tenant is about the
indexes of all tenants.
"""

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from penstock.app.context import Context
from penstock.apps.agents.worker import Worker

if TYPE_CHECKING:
    from penstock.apps.agents.vectors.store import IndexInfo


class EmbeddingItemData(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """A text to embed, and what it is of.

    Without `embeddingId` the vector has an id that follows from its source: another job for the
    same source replaces it.
    """

    source_id: str
    text: str
    embedding_id: str | None = None
    user_id: str | None = None
    metadata: dict[str, Any] = {}


class EmbeddingBatchData(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Texts, where their vectors go, and the target whose rows learn their ids."""

    items: list[EmbeddingItemData]
    namespace: str
    target: str | None = None


class EmbeddingResult(Struct, rename="camel", omit_defaults=True, kw_only=True):
    """What became of an item; one that failed has no vector and an error."""

    source_id: str
    embedding_id: str | None
    success: bool
    error: str | None = None


class EmbeddingBatchResult(Struct, rename="camel", kw_only=True):
    """How many vectors were made, and what became of each item."""

    total: int
    succeeded: int
    failed: int
    results: list[EmbeddingResult]


class EmbeddingBatch(Worker[EmbeddingBatchData, EmbeddingBatchResult]):
    """Embed texts, 32 at a time, and keep their vectors.

    An item that cannot be embedded fails alone. With `target`, rows of the table that the settings
    name under it learn the ids of their vectors, in the same commit.
    """

    name = "embedding-batch"

    async def process(self, data: EmbeddingBatchData, ctx: Context) -> EmbeddingBatchResult:
        """Embed, keep and tell, one commit for each batch."""
        from penstock.apps.agents.vectors.batch import BATCH, Batch
        from penstock.apps.agents.vectors.store import vectors_of
        from penstock.apps.agents.vectors.targets import find_target
        from penstock.model.options import check_name

        check_name("namespace", data.namespace)
        app, tenant = ctx.app, ctx.job.tenant_id
        batch = Batch(
            app=app,
            namespace=data.namespace,
            tenant=tenant,
            target=None if data.target is None else find_target(app, data.target, tenant),
            tried_again=ctx.attempt <= (ctx.job.max_retries or 0),
        )
        results: list[EmbeddingResult] = []
        total = -(-len(data.items) // BATCH)
        for n in range(total):
            percent = (n + 1) / total * 80
            ctx.progress(
                {"phase": "embedding", "batch": n + 1, "totalBatches": total, "percent": percent}
            )
            results += await batch.run(data.items[n * BATCH : (n + 1) * BATCH])
        await vectors_of(app).keep_up(data.namespace, tenant)
        ctx.progress({"phase": "complete", "percent": 100})
        succeeded = sum(result.success for result in results)
        return EmbeddingBatchResult(
            total=len(results),
            succeeded=succeeded,
            failed=len(results) - succeeded,
            results=results,
        )


class EmbeddingReindexData(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Which namespace, or all of them.

    With `dropMissing`, vectors whose text nobody kept are given up; without it, their index stays
    with its model.
    """

    namespace: str | None = None
    batch_size: int = 256
    drop_missing: bool = False


class ReindexedData(Struct, rename="camel", omit_defaults=True, kw_only=True):
    """What became of one index; one that was not switched has a reason."""

    namespace: str
    tenant_id: str
    model: str
    switched: bool
    embedded: int = 0
    reason: str | None = None


class EmbeddingReindexResult(Struct, rename="camel", kw_only=True):
    """How many indexes have another model now, and what became of each."""

    reindexed: bool
    embedded: int
    indexes: list[ReindexedData]


class EmbeddingReindex(Worker[EmbeddingReindexData, EmbeddingReindexResult]):
    """Embed everything again after the embedder was changed, and switch to it.

    The vectors of the former model are searched until all new ones are there; then the index
    switches in one commit, and the former ones go.
    """

    name = "embedding-reindex"

    async def process(self, data: EmbeddingReindexData, ctx: Context) -> EmbeddingReindexResult:
        """Embed into new rows, switch, and delete the former ones, index by index."""
        from penstock.apps.agents.vectors.reindex import Reindexing, rows_of

        found = await rows_of(ctx.app).indexes(data.namespace, ctx.job.tenant_id or None)
        total = sum(info.count for info in found) or 1
        indexes: list[ReindexedData] = []
        done = 0
        for info in found:
            index = await rows_of(ctx.app).find(info.namespace, info.tenant_id)
            if index is None:
                continue

            def show(embedded: int, before: int = done) -> None:
                percent = min(99.0, (before + embedded) / total * 100)
                ctx.progress({"phase": "embedding", "percent": percent})

            one = Reindexing(ctx.app, index, max(1, data.batch_size))
            indexes.append(await one.run(data.drop_missing, show))
            done += info.count
        ctx.progress({"phase": "complete", "percent": 100})
        return EmbeddingReindexResult(
            reindexed=any(each.switched for each in indexes),
            embedded=sum(each.embedded for each in indexes),
            indexes=indexes,
        )


class IndexOptimizationData(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Which namespace, or all; an index is compacted if more than 1 - threshold is deleted."""

    namespace: str | None = None
    threshold: float = 0.8


class IndexOptimizationResult(Struct, rename="camel", kw_only=True):
    """How many indexes there are, were compacted, and how many vectors went by it."""

    checked: int
    optimized: int
    vectors_removed: int


class IndexOptimization(Worker[IndexOptimizationData, IndexOptimizationResult]):
    """Compact indexes of which a good part is deleted."""

    name = "index-optimization"

    async def process(self, data: IndexOptimizationData, ctx: Context) -> IndexOptimizationResult:
        """Compact what needs it, one commit for each index."""
        from penstock.apps.agents.vectors.store import vectors_of

        vectors = vectors_of(ctx.app)
        found = await vectors.indexes(data.namespace, ctx.job.tenant_id or None)
        optimized, removed = 0, 0
        for n, info in enumerate(found):
            if await vectors.optimise(info.namespace, info.tenant_id, data.threshold):
                optimized += 1
                removed += info.deleted
            ctx.progress(_phase("optimizing", info, n + 1, len(found)))
        return IndexOptimizationResult(
            checked=len(found), optimized=optimized, vectors_removed=removed
        )


class IndexRebalanceData(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Which namespace, or all; the least recall is that of the settings unless it is given."""

    namespace: str | None = None
    threshold: float | None = None
    sample: int = 100


class MeasuredIndex(Struct, rename="camel", kw_only=True):
    """The recall of an index in the end, and whether it was built anew for it."""

    namespace: str
    tenant_id: str
    recall: float
    rebuilt: bool


class IndexRebalanceResult(Struct, rename="camel", kw_only=True):
    """How many indexes were measured and built anew, and each of them."""

    checked: int
    rebuilt: int
    indexes: list[MeasuredIndex]


class IndexRebalance(Worker[IndexRebalanceData, IndexRebalanceResult]):
    """Measure indexes against an exact search of a sample, and build anew those that miss much."""

    name = "index-rebalance"

    async def process(self, data: IndexRebalanceData, ctx: Context) -> IndexRebalanceResult:
        """Measure, build anew where it is needed, and measure again."""
        from penstock.apps.agents.vectors.store import vectors_of

        vectors = vectors_of(ctx.app)
        least = data.threshold
        if least is None:
            least = ctx.app.extensions.settings("agents").vectors.least_recall
        found = await vectors.indexes(data.namespace, ctx.job.tenant_id or None)
        measured: list[MeasuredIndex] = []
        for n, info in enumerate(found):
            where, sample = (info.namespace, info.tenant_id), max(1, data.sample)
            recall = await vectors.recall(*where, sample=sample)
            if recall is None:
                continue
            rebuilt = recall < least
            if rebuilt:
                await vectors.rebuild(*where)
                recall = await vectors.recall(*where, sample=sample) or 0.0
            measured.append(
                MeasuredIndex(
                    namespace=info.namespace,
                    tenant_id=info.tenant_id,
                    recall=recall,
                    rebuilt=rebuilt,
                )
            )
            ctx.progress(_phase("measuring", info, n + 1, len(found)))
        return IndexRebalanceResult(
            checked=len(measured),
            rebuilt=sum(each.rebuilt for each in measured),
            indexes=measured,
        )


def _phase(phase: str, info: "IndexInfo", done: int, total: int) -> dict[str, Any]:
    return {"phase": phase, "namespace": info.namespace, "percent": done / total * 100}


WORKERS: tuple[type[Worker[Any, Any]], ...] = (
    EmbeddingBatch,
    EmbeddingReindex,
    IndexOptimization,
    IndexRebalance,
)
