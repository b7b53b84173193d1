"""The types of jobs about learning: trajectories, patterns, a classifier that forgets little."""

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from penstock.app.context import Context
from penstock.app.options import CallFields
from penstock.apps.agents.worker import Worker, enqueue_admitted, prepared
from penstock.model.errors import InvalidOption

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.apps.agents.learning.training import TenantConsolidation, TenantTraining

PROCESS = "trajectory-process"
STRENGTH = 30.0
MOST_SHOWN = 100
"""The results of so many tenants are listed one by one."""


class TrajectoryData(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Which sessions to look through; without any, those that are over and were not yet."""

    session_ids: list[str] | None = None
    batch_size: int = 100

    def __post_init__(self) -> None:
        if not 1 <= self.batch_size <= 1_000:
            raise InvalidOption("batchSize", self.batch_size, "1 to 1000")


class TrajectoriesMade(Struct, rename="camel", frozen=True):
    """How many sessions were looked through, and how the tasks in them ended."""

    processed: int
    trajectories: int
    verdicts: dict[str, int]
    skipped: int


class TrajectoryProcess(Worker[TrajectoryData, TrajectoriesMade]):
    """Make trajectories of sessions: each task with a verdict, its figures and an embedding.

    A session that is looked through again has its trajectories replaced.
    """

    name = PROCESS

    async def process(self, data: TrajectoryData, ctx: Context) -> TrajectoriesMade:
        """Look through some sessions at a time, each in one commit with its vectors."""
        from penstock.apps.agents.learning.trajectories import read_sessions, unseen, write

        tenant = ctx.job.tenant_id or None
        at: int
        at, processed, counts = ctx.checkpoint or (0, 0, {})
        verdicts: Counter[str] = Counter(counts)
        named = data.session_ids
        while True:
            if named is None:
                ids: Sequence[str] = await unseen(ctx.app, tenant, data.batch_size)
            else:
                ids = named[at : at + data.batch_size]
            if not ids:
                break
            done = await write(ctx.app, await read_sessions(ctx.app, ids, tenant))
            at += len(ids)
            processed += done.sessions
            verdicts.update(done.verdicts)
            await ctx.save_checkpoint((at, processed, verdicts))
            ctx.progress(
                {"phase": "processing", "processed": processed}
                | ({"percent": round(100 * at / len(named))} if named else {})
            )
            if named is None and not done.sessions:
                break
        return TrajectoriesMade(
            processed=processed,
            trajectories=verdicts.total(),
            verdicts=dict(sorted(verdicts.items())),
            skipped=at - processed,
        )


class TrainingData(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """`batchSize` trajectories, the latest, are learned from, `epochs` times over.

    `penalty` is how strongly the classifier holds to what `ewc-consolidation` has marked.
    """

    batch_size: int = 1_000
    epochs: int = 5
    penalty: float = STRENGTH

    def __post_init__(self) -> None:
        if not 1 <= self.batch_size <= 20_000:
            raise InvalidOption("batchSize", self.batch_size, "1 to 20000")
        if not 1 <= self.epochs <= 1_000:
            raise InvalidOption("epochs", self.epochs, "1 to 1000")
        if not self.penalty >= 0:
            raise InvalidOption("penalty", self.penalty, "0 or more")


class PatternsTrained(Struct, rename="camel", frozen=True, omit_defaults=True, kw_only=True):
    """What was learned, over all tenants; or why nothing was."""

    trained: bool
    reason: str = ""
    trajectories: int = 0
    patterns_created: int = 0
    patterns_updated: int = 0
    patterns_deactivated: int = 0
    classifiers_activated: int = 0
    results: list[Any] = []


class PatternTraining(Worker[TrainingData, PatternsTrained]):
    """Learn from trajectories: patterns that hold for others, and a classifier of verdicts.

    One of five trajectories is held out, and decides: a pattern is used if it holds there, and a
    classifier replaces the one before it only if it is better there. A pattern that was followed
    more than ten times and helped in fewer than three of ten is given up.
    """

    name = "pattern-training"

    async def process(self, data: TrainingData, ctx: Context) -> PatternsTrained:
        """Train tenant by tenant, each in one commit."""
        from penstock.apps.agents.learning.training import Plan, tenants, train_tenant

        plan = Plan(batch_size=data.batch_size, epochs=data.epochs, strength=data.penalty)
        wanted = await tenants(ctx.app, ctx.job.tenant_id, "tenants_with_trajectories")
        results: list[TenantTraining] = []
        for number, tenant_id in enumerate(wanted):

            def show(phase: str, share: float, number: int = number) -> None:
                percent = round(100 * (number + share) / len(wanted))
                ctx.progress({"phase": phase, "percent": percent})

            results.append(await train_tenant(ctx.app, tenant_id, plan, ctx.id, show))
            if ctx.cancelled:
                break
        ctx.progress({"phase": "complete", "percent": 100})
        trained = [each for each in results if not each.reason]
        return PatternsTrained(
            trained=bool(trained),
            reason="" if trained else _reason(results, "insufficient_trajectories"),
            trajectories=sum(each.trajectories for each in trained),
            patterns_created=sum(each.patterns_created for each in results),
            patterns_updated=sum(each.patterns_updated for each in results),
            patterns_deactivated=sum(each.patterns_deactivated for each in results),
            classifiers_activated=sum(each.activated for each in results),
            results=list(results[:MOST_SHOWN]),
        )


class ConsolidationData(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """On how many trajectories to look, and how fast what mattered before fades."""

    sample_size: int = 1_000
    decay: float = 0.95

    def __post_init__(self) -> None:
        if not 1 <= self.sample_size <= 20_000:
            raise InvalidOption("sampleSize", self.sample_size, "1 to 20000")
        if not 0 <= self.decay <= 1:
            raise InvalidOption("decay", self.decay, "0 to 1")


class Consolidated(Struct, rename="camel", frozen=True, omit_defaults=True, kw_only=True):
    """How many parameters were marked, over all tenants; or why none were."""

    consolidated: bool
    reason: str = ""
    classifiers: int = 0
    parameters: int = 0
    trajectories: int = 0
    results: list[Any] = []


class EwcConsolidation(Worker[ConsolidationData, Consolidated]):
    """Mark how much each parameter of the active classifier matters (its Fisher information).

    The next `pattern-training` holds those parameters near their values while it learns from newer
    trajectories, so that what was learned before is not forgotten.
    """

    name = "ewc-consolidation"

    async def process(self, data: ConsolidationData, ctx: Context) -> Consolidated:
        """Consolidate tenant by tenant."""
        from penstock.apps.agents.learning.training import consolidate_tenant, tenants

        wanted = await tenants(ctx.app, ctx.job.tenant_id, "tenants_with_classifiers")
        results: list[TenantConsolidation] = []
        for number, tenant_id in enumerate(wanted):
            results.append(
                await consolidate_tenant(ctx.app, tenant_id, data.sample_size, data.decay)
            )
            percent = round(100 * (number + 1) / len(wanted))
            ctx.progress({"phase": "consolidating", "percent": percent})
        done = [each for each in results if not each.reason]
        return Consolidated(
            consolidated=bool(done),
            reason="" if done else _reason(results, "no_classifier"),
            classifiers=len(done),
            parameters=sum(each.parameters for each in done),
            trajectories=sum(each.trajectories for each in done),
            results=list(results[:MOST_SHOWN]),
        )


def _reason(
    results: "Sequence[TenantTraining] | Sequence[TenantConsolidation]", without: str
) -> str:
    reasons = [each.reason for each in results]
    return reasons[0] if reasons else without


def process_later(
    app: "Penstock", tx: Any, tenant: str, workspace: str | None, session_ids: list[str]
) -> None:
    """Have sessions looked through, by a job that is enqueued in this commit if it is let in."""
    data = TrajectoryData(session_ids=session_ids)
    options: CallFields = {"tenant": tenant, "workspace": workspace}
    enqueue_admitted(tx, prepared(app.find_type(PROCESS), data, options))


WORKERS: tuple[type[Worker[Any, Any]], ...] = (
    TrajectoryProcess,
    PatternTraining,
    EwcConsolidation,
)
