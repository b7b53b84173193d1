"""Train on the trajectories of a tenant: patterns, and the classifier that predicts verdicts.

A fifth of the trajectories, always the same ones, is never learned from: patterns hold, and a
classifier is better than the one before it, by these alone. All that a training finds out about a
tenant is written in one commit, under an id that is made of what was learned from: trained again on
the same, it changes nothing.
"""

import asyncio
from collections.abc import Callable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from penstock.apps.agents.learning import classifier as model
from penstock.apps.agents.learning.patterns import (
    Keeping,
    Learned,
    Written,
    deactivate_failing,
    keep,
    learn,
    read_known,
    refuted,
)
from penstock.apps.agents.learning.records import (
    LEAST_SUCCESS,
    USES,
    Trajectory,
    trajectory_of,
)
from penstock.apps.agents.sessions.records import LATEST, written
from penstock.apps.agents.vectors.embedder import embedder_of
from penstock.apps.agents.vectors.store import PATTERNS, TRAJECTORIES, vectors_of
from penstock.model.ids import derived_id

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from penstock.app.penstock import Penstock

    Vectors = NDArray[numpy.float32]

FEWEST = 10
"""From fewer trajectories nothing is learned."""
HELD_OUT = 5
"""One of so many trajectories is held out."""
INSUFFICIENT = "insufficient_trajectories"
NOTHING_NEW = "nothing_new"
NO_CLASSIFIER = "no_classifier"
LONGEST_LINE = 1_000
"""So far back it is looked for a classifier that was consolidated."""
MODEL_CHANGED = "model_changed"
"""Patterns are still of another embedder than trajectories: `embedding-reindex` is to run first."""


class Plan(Struct, frozen=True, kw_only=True):
    """How to train."""

    batch_size: int
    epochs: int
    strength: float
    """How strongly what was consolidated is held to."""


class TenantTraining(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What became of the training of one tenant.

    `accuracy` is the share of held-out verdicts that the new classifier predicts, and
    `previousAccuracy` that of the one before it, or of guessing the most frequent verdict.
    """

    tenant_id: str
    trajectories: int
    held_out: int = 0
    reason: str = ""
    patterns_created: int = 0
    patterns_updated: int = 0
    patterns_activated: int = 0
    patterns_superseded: int = 0
    patterns_deactivated: int = 0
    classifier_id: str = ""
    activated: bool = False
    accuracy: float | None = None
    previous_accuracy: float | None = None


class Active(Struct, frozen=True, kw_only=True):
    """A classifier as its row holds it."""

    id: str
    tenant_id: str
    parent_id: str | None
    model: str
    parameters: Any
    fisher: Any
    figures: dict[str, Any]
    is_active: bool
    job_id: str
    created_at: int


class Examples(Struct, frozen=True, kw_only=True):
    """Trajectories and their vectors, row by row, which are all of one model."""

    model: str
    training: list[Trajectory]
    vectors: Any
    held_out: list[Trajectory]
    held_vectors: Any

    @property
    def all_trajectories(self) -> list[Trajectory]:
        """Those that are learned from, and those that are held out."""
        return [*self.training, *self.held_out]

    @property
    def all_vectors(self) -> "Vectors":
        """Their vectors."""
        import numpy

        return numpy.vstack([self.vectors, self.held_vectors])

    @property
    def digest(self) -> str:
        """What was learned from: the same trajectories with the same verdicts have the same."""
        hashed = blake2b(self.model.encode(), digest_size=16)
        for each in sorted(self.all_trajectories, key=lambda each: each.id):
            hashed.update(f"\0{each.id}\0{each.verdict}\0{each.content}".encode())
        return hashed.hexdigest()


class Trained(Struct, frozen=True, kw_only=True):
    """What a training found, before it is written."""

    patterns: list[Learned]
    parameters: Any
    accuracy: float
    previous: float
    better: bool


def is_held_out(trajectory_id: str) -> bool:
    """Whether a trajectory is one of those that are never learned from."""
    hashed = blake2b(trajectory_id.encode(), digest_size=4).digest()
    return int.from_bytes(hashed, "big") % HELD_OUT == 0


async def read_examples(
    app: "Penstock", tenant_id: str, limit: int, until: int = LATEST
) -> Examples | None:
    """The latest trajectories of a tenant with known ends; None if there are too few."""
    asked = {"tenant": tenant_id, "limit": limit, "until": until}
    rows = await app.read(lambda tx: tx.agents.rows("trajectories_to_learn", asked))
    found = [trajectory_of(row) for row in rows]
    store = vectors_of(app)
    held = await store.get(TRAJECTORIES, [each.id for each in found], tenant=tenant_id)
    found = [each for each in found if each.id in held]
    training = [each for each in found if not is_held_out(each.id)]
    held_out = [each for each in found if is_held_out(each.id)]
    if len(found) < FEWEST or not held_out or not training:
        return None
    import numpy

    def stacked(several: Sequence[Trajectory]) -> "Vectors":
        return numpy.stack([held[each.id] for each in several])

    infos = await store.indexes(TRAJECTORIES, tenant_id)
    return Examples(
        model=infos[0].model if infos else embedder_of(app).model,
        training=training,
        vectors=stacked(training),
        held_out=held_out,
        held_vectors=stacked(held_out),
    )


async def active_classifier(app: "Penstock", tenant_id: str) -> Active | None:
    """The classifier that a tenant's verdicts are predicted by."""
    row = await app.read(lambda tx: tx.agents.row("active_classifier", (tenant_id,)))
    return None if row is None else _active(row)


async def find_classifier(app: "Penstock", classifier_id: str) -> Active | None:
    """A classifier by its id."""
    row = await app.read(lambda tx: tx.agents.row("classifier", (classifier_id,)))
    return None if row is None else _active(row)


async def _consolidated(app: "Penstock", known: Active | None) -> Active | None:
    """The nearest classifier in a line of parents, itself included, that was consolidated."""
    for _ in range(LONGEST_LINE):
        if known is None or known.fisher is not None:
            return known
        known = None if known.parent_id is None else await find_classifier(app, known.parent_id)
    return None


def _active(row: tuple[Any, ...]) -> Active:
    known: dict[str, Any] = dict(zip(Active.__struct_fields__, row, strict=True))
    for name in ("parameters", "fisher"):
        known[name] = None if known[name] is None else model.from_bytes(known[name])
    known["figures"] = msgspec.json.decode(known["figures"])
    known["is_active"] = bool(known["is_active"])
    return Active(**known)


async def train_tenant(
    app: "Penstock",
    tenant_id: str,
    plan: Plan,
    job_id: str,
    show: Callable[[str, float], None],
) -> TenantTraining:
    """Train for one tenant; `show` hears of each phase and how much of it is done."""
    show("loading", 0.1)
    examples = await read_examples(app, tenant_id, plan.batch_size)
    if examples is None:
        given_up = await _deactivate(app, tenant_id)
        return TenantTraining(
            tenant_id=tenant_id, trajectories=0, reason=INSUFFICIENT, patterns_deactivated=given_up
        )
    classifier_id = derived_id(
        max(0, min(each.started_at for each in examples.training)),
        *("classifier", tenant_id, examples.digest, str(plan.epochs), str(plan.strength)),
    )
    known = await find_classifier(app, classifier_id)
    if known is not None:
        if known.job_id == job_id:  # it was killed after this commit
            return msgspec.convert(known.figures["training"], TenantTraining)
        return TenantTraining(
            tenant_id=tenant_id,
            trajectories=len(examples.training),
            held_out=len(examples.held_out),
            reason=NOTHING_NEW,
            classifier_id=classifier_id,
            patterns_deactivated=await _deactivate(app, tenant_id),
        )
    store = vectors_of(app)
    if any(each.model != examples.model for each in await store.indexes(PATTERNS, tenant_id)):
        return TenantTraining(tenant_id=tenant_id, trajectories=0, reason=MODEL_CHANGED)
    parent = await active_classifier(app, tenant_id)
    if parent is not None and parent.model != examples.model:
        parent = None
    show("training", 0.3)
    anchor = _anchor(await _consolidated(app, parent), plan.strength)
    trained = await asyncio.to_thread(_train, examples, parent, anchor, plan, classifier_id, show)
    show("saving", 0.9)
    before, vectors = await read_known(app, store, tenant_id)
    keeping = Keeping(
        tenant_id=tenant_id,
        store=store,
        model=examples.model,
        before=before,
        vectors=vectors,
        refuted=refuted(before, vectors, examples.all_trajectories, examples.all_vectors),
    )

    def work(tx: Any) -> TenantTraining:
        kept = keep(tx, keeping, trained.patterns)
        deactivated = deactivate_failing(tx, tenant_id, USES, LEAST_SUCCESS)
        done = _told(tenant_id, examples, trained, classifier_id, kept, deactivated)
        figures = {"training": msgspec.to_builtins(done), "batch_size": plan.batch_size}
        tx.agents.run(
            "put_classifier",
            {
                "id": classifier_id,
                "tenant_id": tenant_id,
                "parent_id": None if parent is None else parent.id,
                "model": examples.model,
                "parameters": model.to_bytes(trained.parameters),
                "figures": written(figures),
                "job_id": job_id,
                "now": tx.now,
            },
        )
        if trained.better:
            tx.agents.run("activate_classifier", {"id": classifier_id, "tenant": tenant_id})
        return done

    return await app.transact(work)


def _anchor(consolidated: Active | None, strength: float) -> model.Anchor | None:
    if consolidated is None or strength <= 0:
        return None
    return model.Anchor(consolidated.parameters, consolidated.fisher, strength)


def _train(
    examples: Examples,
    parent: Active | None,
    anchor: model.Anchor | None,
    plan: Plan,
    seed: str,
    show: Callable[[str, float], None],
) -> Trained:
    """Find patterns, train a classifier on from its parent, and compare it with that one."""
    patterns = learn(examples.training, examples.vectors, examples.held_out, examples.held_vectors)
    labels = model.labels_of([each.verdict for each in examples.training])
    held = model.labels_of([each.verdict for each in examples.held_out])
    parameters = model.train(
        examples.vectors,
        labels,
        epochs=plan.epochs,
        seed=int.from_bytes(blake2b(seed.encode(), digest_size=8).digest(), "big"),
        begin=None if parent is None else parent.parameters,
        anchor=anchor,
        show=lambda epoch: show(f"epoch {epoch}", 0.3 + 0.6 * epoch / plan.epochs),
    )
    now = model.score(parameters, examples.held_vectors, held)
    guessed = model.guess(labels, held)
    previous = guessed
    if parent is not None:
        previous = model.score(parent.parameters, examples.held_vectors, held)
    return Trained(
        patterns=patterns,
        parameters=parameters,
        accuracy=now.accuracy,
        previous=previous.accuracy,
        better=now > previous and now.accuracy >= guessed.accuracy,
    )


def _told(
    tenant_id: str,
    examples: Examples,
    trained: Trained,
    classifier_id: str,
    kept: Written,
    deactivated: int,
) -> TenantTraining:
    return TenantTraining(
        tenant_id=tenant_id,
        trajectories=len(examples.training),
        held_out=len(examples.held_out),
        patterns_created=kept.created,
        patterns_updated=kept.updated,
        patterns_activated=kept.activated,
        patterns_superseded=kept.superseded,
        patterns_deactivated=deactivated + kept.refuted,
        classifier_id=classifier_id,
        activated=trained.better,
        accuracy=round(trained.accuracy, 4),
        previous_accuracy=round(trained.previous, 4),
    )


async def _deactivate(app: "Penstock", tenant_id: str) -> int:
    return await app.transact(lambda tx: deactivate_failing(tx, tenant_id, USES, LEAST_SUCCESS))


class TenantConsolidation(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What became of the consolidation of one tenant's classifier."""

    tenant_id: str
    reason: str = ""
    classifier_id: str = ""
    parameters: int = 0
    trajectories: int = 0
    mean_fisher: float = 0.0


async def consolidate_tenant(
    app: "Penstock", tenant_id: str, sample_size: int, decay: float
) -> TenantConsolidation:
    """Keep how much each parameter of a tenant's classifier matters, with what did before.

    It is computed on what the classifier was trained on, and added to that of the last one before
    it that was consolidated, which fades by `decay`: done again, it is the same.
    """
    active = await active_classifier(app, tenant_id)
    if active is None:
        return TenantConsolidation(tenant_id=tenant_id, reason=NO_CLASSIFIER)
    limit = min(sample_size, int(active.figures["batch_size"]))
    examples = await read_examples(app, tenant_id, limit, active.created_at)
    if examples is None or examples.model != active.model:
        return TenantConsolidation(tenant_id=tenant_id, reason=INSUFFICIENT)
    fisher = await asyncio.to_thread(model.fisher_of, active.parameters, examples.vectors)
    parent = None if active.parent_id is None else await find_classifier(app, active.parent_id)
    earlier = await _consolidated(app, parent)
    if earlier is not None:
        fisher = fisher + decay * earlier.fisher
    done = TenantConsolidation(
        tenant_id=tenant_id,
        classifier_id=active.id,
        parameters=int(fisher.size),
        trajectories=len(examples.training),
        mean_fisher=float(fisher.mean()),
    )
    row = {
        "id": active.id,
        "fisher": model.to_bytes(fisher),
        "figures": written({**active.figures, "consolidation": msgspec.to_builtins(done)}),
    }
    await app.transact(lambda tx: tx.agents.run("keep_fisher", row))
    return done


async def tenants(app: "Penstock", tenant_id: str, query: str) -> list[str]:
    """The tenant of a job; those that a query lists, if it has none."""
    if tenant_id:
        return [tenant_id]
    rows = await app.read(lambda tx: tx.agents.rows(query))
    return [str(row[0]) for row in rows]
