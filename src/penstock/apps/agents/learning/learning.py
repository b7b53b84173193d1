"""`app.agents.learning`: what was learned from sessions, and what it says of a new task."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.apps.agents.learning import classifier as model
from penstock.apps.agents.learning.patterns import BY_HAND, set_active
from penstock.apps.agents.learning.records import (
    ANTI_PATTERN,
    MATCH,
    VERDICTS,
    WORKFLOW,
    ClassifierRow,
    Match,
    Pattern,
    PatternNotFound,
    Prediction,
    Trajectory,
    TrajectoryNotFound,
    classifier_of,
    pattern_of,
    trajectory_of,
)
from penstock.apps.agents.learning.training import active_classifier
from penstock.apps.agents.learning.verdicts import with_skills
from penstock.apps.agents.sessions.records import MOST, placed
from penstock.apps.agents.vectors.embedder import embed, embedder_for
from penstock.apps.agents.vectors.store import PATTERNS, vectors_of
from penstock.model.errors import InvalidOption

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

MOST_COMPARED = 10_000


class Learning:
    """Trajectories, patterns and classifiers. `tenant=None` sees all of them."""

    def __init__(self, app: "Penstock") -> None:
        self._app = app

    async def match(
        self, task: str, *, tenant: str, skills: Sequence[str] = (), k: int = 5, use: bool = True
    ) -> list[Match]:
        """Return the active patterns that fit a task, the best first, and count that they are used.

        With `use=False` it only looks. Name the patterns that are followed in `patternIds` of a
        turn's metadata, and they are credited when the task succeeds.
        """
        asked = _patterns_asked(tenant=tenant, active=True, limit=MOST_COMPARED)
        rows = await self._app.read(lambda tx: tx.agents.rows("patterns", asked))
        active = {pattern.id: pattern for pattern in map(pattern_of, rows)}
        if not active:
            return []
        hits = await vectors_of(self._app).search_text(
            PATTERNS,
            with_skills(task, skills),
            max(1, min(k, MOST)),
            tenant=tenant,
            keep=lambda hit: hit.id in active,
        )
        found = [hit for hit in hits if hit.score >= MATCH and hit.id in active]
        if use and found:
            used = [(hit.id,) for hit in found]
            await self._app.transact(lambda tx: tx.agents.many("use_pattern", used))
        return [Match(pattern=active[hit.id], score=hit.score) for hit in found]

    async def succeeded(self, pattern_id: str, *, tenant: str) -> Pattern:
        """Count that a pattern has helped, where no session tells of it."""

        def work(tx: Any) -> Pattern:
            credit = {"id": pattern_id, "tenant": tenant, "more": 1}
            if not tx.agents.run("credit_pattern", credit):
                raise PatternNotFound(pattern_id)
            return _find_pattern(tx, pattern_id, tenant)

        return await self._app.transact(work)

    async def predict(
        self, task: str, *, tenant: str, skills: Sequence[str] = ()
    ) -> Prediction | None:
        """Say how a task is likely to end; None before a classifier has been trained."""
        active = await active_classifier(self._app, tenant)
        embedder = None if active is None else embedder_for(self._app, active.model)
        if active is None or embedder is None:
            return None
        vectors = await embed(embedder, [with_skills(task, skills)])
        given = model.probabilities(active.parameters, vectors)[0]
        shares = {name: float(share) for name, share in zip(model.CLASSES, given, strict=True)}
        return Prediction(
            verdict=max(shares, key=lambda name: shares[name]),
            probabilities=shares,
            classifier_id=active.id,
        )

    async def trajectories(
        self,
        *,
        tenant: str | None = None,
        verdict: str | None = None,
        session: str | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> list[Trajectory]:
        """List trajectories, the latest first; `before` is `ENDED_AT-ID` of the last one seen."""
        if verdict is not None and verdict not in VERDICTS:
            raise InvalidOption("verdict", verdict, f"one of: {', '.join(VERDICTS)}")
        before_at, before_id = placed(before)
        asked = {
            "tenant": tenant,
            "verdict": verdict,
            "session": session,
            "before_at": before_at,
            "before_id": before_id,
            "limit": max(1, min(limit, MOST)),
        }
        rows = await self._app.read(lambda tx: tx.agents.rows("trajectories", asked))
        return [trajectory_of(row) for row in rows]

    async def trajectory(self, trajectory_id: str, *, tenant: str | None = None) -> Trajectory:
        """Find a trajectory by its id."""
        asked = {"id": trajectory_id, "tenant": tenant}
        row = await self._app.read(lambda tx: tx.agents.row("trajectory", asked))
        if row is None:
            raise TrajectoryNotFound(trajectory_id)
        return trajectory_of(row)

    async def patterns(
        self,
        *,
        tenant: str | None = None,
        active: bool | None = None,
        pattern_type: str | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> list[Pattern]:
        """List patterns by their ids, the latest first; `before` is the last id that was seen."""
        if pattern_type not in (None, WORKFLOW, ANTI_PATTERN):
            raise InvalidOption("pattern_type", pattern_type, f"{WORKFLOW} or {ANTI_PATTERN}")
        asked = _patterns_asked(
            tenant=tenant,
            active=active,
            pattern_type=pattern_type,
            before=before,
            limit=max(1, min(limit, MOST)),
        )
        rows = await self._app.read(lambda tx: tx.agents.rows("patterns", asked))
        return [pattern_of(row) for row in rows]

    async def pattern(self, pattern_id: str, *, tenant: str | None = None) -> Pattern:
        """Find a pattern by its id."""
        return await self._app.read(lambda tx: _find_pattern(tx, pattern_id, tenant))

    async def activate(
        self, pattern_id: str, *, active: bool = True, tenant: str | None = None
    ) -> Pattern:
        """Switch a pattern on, or off: one that is switched off by hand stays off."""

        def work(tx: Any) -> Pattern:
            pattern = _find_pattern(tx, pattern_id, tenant)
            if not set_active(tx, pattern, active=active, reason=BY_HAND):
                expected = f"one that is not superseded by {pattern.superseded_by}"
                raise InvalidOption("pattern", pattern_id, expected)
            return _find_pattern(tx, pattern_id, tenant)

        return await self._app.transact(work)

    async def classifiers(
        self, *, tenant: str | None = None, limit: int = 100
    ) -> list[ClassifierRow]:
        """List the classifiers that were trained, the latest first."""
        asked = {"tenant": tenant, "limit": max(1, min(limit, MOST))}
        rows = await self._app.read(lambda tx: tx.agents.rows("classifiers", asked))
        return [classifier_of(row) for row in rows]


def _patterns_asked(
    *,
    tenant: str | None,
    active: bool | None,
    limit: int,
    pattern_type: str | None = None,
    before: str | None = None,
) -> dict[str, Any]:
    return {
        "tenant": tenant,
        "active": None if active is None else int(active),
        "kind": pattern_type,
        "before": before,
        "limit": limit,
    }


def _find_pattern(tx: Any, pattern_id: str, tenant: str | None) -> Pattern:
    row = tx.agents.row("pattern", {"id": pattern_id, "tenant": tenant})
    if row is None:
        raise PatternNotFound(pattern_id)
    return pattern_of(row)
