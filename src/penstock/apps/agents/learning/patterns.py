"""Patterns: tasks that resemble each other and end alike, told of only if they held elsewhere.

Trajectories are grouped by their embeddings. What a group says is checked against trajectories that
had no part in it, and only what holds there is used.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from penstock.apps.agents.learning.records import (
    ANTI_PATTERN,
    FAILURE,
    MATCH,
    PARTIAL,
    SUCCESS,
    WORKFLOW,
    Pattern,
    Trajectory,
    pattern_of,
)
from penstock.apps.agents.sessions.records import written
from penstock.apps.agents.vectors.store import PATTERNS, Entry, vectors_of
from penstock.model.ids import derived_id
from penstock.model.wording import counted

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from penstock.app.penstock import Penstock
    from penstock.apps.agents.vectors.store import VectorStore
    from penstock.extension import Erasing

    Vectors = NDArray[numpy.float32]

FEWEST = 3
"""Fewer trajectories are no pattern."""
EXEMPLARS = 5
AT_ONCE = 512
"""So many vectors are compared with all others at a time."""
SAME_PLACE = 0.9
"""Patterns of one type whose embeddings are nearer than this become one."""
REFUTED_BELOW = 0.4
"""A pattern with which fewer of the latest trajectories agree, no longer holds."""
LEAST_AGREEMENT = 0.6
LONGEST_QUOTE = 160

UNPROVEN = "unproven"
REFUTED = "refuted"
LOW_SUCCESS = "low_success"
BY_HAND = "by_hand"

_GOOD = {SUCCESS: 1.0, PARTIAL: 0.5, FAILURE: 0.0}


class Learned(Struct, frozen=True, kw_only=True):
    """What a group of trajectories says, and what others say to it."""

    pattern_type: str
    content: str
    vector: Any
    text: str
    exemplars: list[str]
    confidence: float
    holds: bool
    figures: dict[str, Any]
    began_at: int


class Written(Struct):
    """What became of patterns in one training."""

    created: int = 0
    updated: int = 0
    activated: int = 0
    superseded: int = 0
    refuted: int = 0


def groups(vectors: "Vectors", threshold: float = MATCH) -> list[tuple[int, list[int]]]:
    """Group vectors: for each group its middle one, and all that are within the threshold of it.

    Groups are begun in the order of the vectors; then each vector goes to the nearest middle.
    """
    import numpy

    middles: dict[int, list[int]] = {}
    left = numpy.ones(len(vectors), bool)
    for at in range(0, len(vectors), AT_ONCE):
        near = vectors[at : at + AT_ONCE] @ vectors.T >= threshold
        for row in numpy.flatnonzero(left[at : at + AT_ONCE]).tolist():
            if left[at + row]:
                left &= ~near[row]
                left[at + row] = False
                around = numpy.flatnonzero(near[row]).tolist() or [at + row]
                middles[_middle(vectors, around)] = []
    centres = list(middles)
    compared = vectors[centres].T
    for at in range(0, len(vectors), AT_ONCE):
        likeness = vectors[at : at + AT_ONCE] @ compared
        for row, (nearest, cosine) in enumerate(
            zip(likeness.argmax(axis=1).tolist(), likeness.max(axis=1).tolist(), strict=True)
        ):
            if cosine >= threshold:
                middles[centres[nearest]].append(at + row)
    return [(middle, members) for middle, members in middles.items() if members]


def _middle(vectors: "Vectors", members: list[int]) -> int:
    """The one that is nearest to the others."""
    within = vectors[members]
    return members[int((within @ within.sum(axis=0)).argmax())]


def learn(
    training: Sequence[Trajectory],
    vectors: "Vectors",
    held_out: Sequence[Trajectory],
    held_vectors: "Vectors",
) -> list[Learned]:
    """Find patterns in some trajectories, and check them against others; the largest first."""
    found: list[Learned] = []
    for middle, members in groups(vectors):
        if len(members) >= FEWEST:
            group = [training[n] for n in members]
            near = vectors[members] @ vectors[middle]
            alike = sorted(range(len(members)), key=lambda n: (-float(near[n]), group[n].id))
            found.append(
                _learned(
                    training[middle],
                    vectors[middle],
                    [group[n] for n in alike],
                    held_out,
                    held_vectors,
                )
            )
    return sorted(found, key=lambda each: (-each.figures["trajectories"], each.content))


def _learned(
    middle: Trajectory,
    vector: Any,
    group: list[Trajectory],
    held_out: Sequence[Trajectory],
    held_vectors: "Vectors",
) -> Learned:
    goodness = sum(_GOOD[each.verdict] for each in group) / len(group)
    pattern_type = WORKFLOW if goodness >= 1 / 2 else ANTI_PATTERN
    likeness = held_vectors @ vector if len(held_out) else []
    matched = [each for each, cosine in zip(held_out, likeness, strict=True) if cosine >= MATCH]
    agreed = sum(_agreement(pattern_type, each) for each in matched)
    usual = sum(_agreement(pattern_type, each) for each in held_out) / max(1, len(held_out))
    holds = bool(matched) and agreed / len(matched) >= max(LEAST_AGREEMENT, usual)
    speaking = [each for each in group if _agreement(pattern_type, each) == 1] or group
    return Learned(
        pattern_type=pattern_type,
        content=_content(pattern_type, middle, group, speaking),
        vector=vector,
        text=middle.content,
        exemplars=[each.id for each in speaking[:EXEMPLARS]],
        confidence=round((agreed + 1) / (len(matched) + 2), 4),
        holds=holds,
        figures={
            "quotes": middle.id,
            "trajectories": len(group),
            "agreement": round(
                sum(_agreement(pattern_type, each) for each in group) / len(group), 4
            ),
            "held_out": len(matched),
            "held_out_agreement": round(agreed / len(matched), 4) if matched else None,
        },
        began_at=middle.started_at,
    )


def _agreement(pattern_type: str, trajectory: Trajectory) -> float:
    good = _GOOD[trajectory.verdict]
    return good if pattern_type == WORKFLOW else 1 - good


def _content(
    pattern_type: str, middle: Trajectory, group: list[Trajectory], speaking: list[Trajectory]
) -> str:
    """What a pattern says, in a sentence or two."""
    asked = middle.content.split(" (", 1)[0].replace("\n", " ").strip()
    quoted = asked if len(asked) <= LONGEST_QUOTE else f"{asked[:LONGEST_QUOTE]}…"
    ways = Counter(tuple(each.skill_ids) for each in speaking)
    way = max(ways, key=lambda skills: (ways[skills], skills))
    succeeded = sum(each.verdict == SUCCESS for each in group)
    told = f"{succeeded} of {counted(len(group), 'such task')} succeeded"
    if pattern_type == WORKFLOW:
        used = f": use {', then '.join(way)}" if way else " are done well without tools"
        return f"Requests such as “{quoted}”{used}. {told[0].upper()}{told[1:]}."
    used = f" with {', '.join(way)}" if way else ""
    return f"Requests such as “{quoted}” fail{used}: {told}. Try another way, or ask first."


class Keeping(Struct, frozen=True, kw_only=True):
    """What is needed to keep patterns of one tenant."""

    tenant_id: str
    store: Any
    model: str
    before: Sequence[Pattern]
    """Those that were there, and are not superseded, when the training read them."""
    vectors: Mapping[str, Any]
    refuted: Collection[str]
    """Those of them with which the latest trajectories do not agree."""


def refuted(
    known: Sequence[Pattern],
    vectors: Mapping[str, Any],
    trajectories: Sequence[Trajectory],
    their_vectors: "Vectors",
) -> set[str]:
    """Say which patterns no longer hold: by the latest trajectories that match them."""
    found: set[str] = set()
    for pattern in known:
        if pattern.id in vectors:
            likeness = their_vectors @ vectors[pattern.id]
            matched = [trajectories[n] for n in (likeness >= MATCH).nonzero()[0]]
            agreed = sum(_agreement(pattern.pattern_type, each) for each in matched)
            if len(matched) >= FEWEST and agreed / len(matched) < REFUTED_BELOW:
                found.add(pattern.id)
    return found


def keep(tx: Any, keeping: Keeping, learned: Sequence[Learned]) -> Written:
    """Write what was learned: change known patterns, add new ones, replace outdated ones."""
    done = Written()
    taken: set[str] = set()
    proven: list[tuple[str, Any]] = []
    for one in learned:
        near = _near_ones(keeping, one, taken)
        if near:
            kept_id, active = near[0][0].id, _change(tx, near[0][0], one, done)
        else:
            kept_id, active = _add(tx, keeping, one, done), one.holds
        taken.add(kept_id)
        _put_vector(tx, keeping, kept_id, one)
        if active:
            proven.append((kept_id, one.vector))
        for old, cosine in near[1:]:
            if cosine >= SAME_PLACE:
                taken.add(old.id)
                _supersede(tx, keeping, old, kept_id, done)
    for old in keeping.before:
        if old.id in keeping.refuted and old.id not in taken:
            _refute(tx, keeping, old, proven, done)
    return done


def _near_ones(
    keeping: Keeping, one: Learned, taken: Collection[str]
) -> list[tuple[Pattern, float]]:
    """The patterns of its type that are about the same tasks, the nearest first."""
    found = [
        (each, float(keeping.vectors[each.id] @ one.vector))
        for each in keeping.before
        if each.id in keeping.vectors
        and each.id not in taken
        and each.pattern_type == one.pattern_type
    ]
    return sorted((pair for pair in found if pair[1] >= MATCH), key=lambda pair: -pair[1])


def _refute(
    tx: Any, keeping: Keeping, old: Pattern, proven: list[tuple[str, Any]], done: Written
) -> None:
    """Replace a pattern that no longer holds by the nearest one that does, or switch it off."""
    vector = keeping.vectors[old.id]
    near = [(float(vector @ theirs), known) for known, theirs in proven]
    cosine, by = max(near, default=(0.0, ""))
    if cosine >= MATCH:
        _supersede(tx, keeping, old, by, done)
    elif old.is_active:
        set_active(tx, old, active=False, reason=REFUTED)
        done.refuted += 1


def _supersede(tx: Any, keeping: Keeping, old: Pattern, by: str, done: Written) -> None:
    if tx.agents.run("supersede_pattern", {"id": old.id, "by": by, "now": tx.now}):
        done.superseded += 1
        keeping.store.remove(tx, PATTERNS, [old.id], tenant=keeping.tenant_id)


def _change(tx: Any, known: Pattern, one: Learned, done: Written) -> bool:
    """Bring a pattern up to date; one that proved bad in use, or was stopped by hand, stays off."""
    reason = known.metadata.get("inactive")
    active = known.is_active or (one.holds and reason in (None, UNPROVEN, REFUTED))
    metadata = {**known.metadata, **one.figures}
    if active:
        metadata.pop("inactive", None)
    changed = {
        "id": known.id,
        "content": one.content,
        "confidence": one.confidence,
        "is_active": int(active),
        "exemplar_trajectory_ids": written(one.exemplars),
        "metadata": written(metadata),
    }
    as_it_is = (
        known.content == one.content
        and known.confidence == one.confidence
        and known.is_active == active
        and known.exemplar_trajectory_ids == one.exemplars
        and known.metadata == metadata
    )
    if not as_it_is:
        tx.agents.run("change_pattern", {**changed, "now": tx.now})
        done.updated += 1
        done.activated += active and not known.is_active
    return active


def _add(tx: Any, keeping: Keeping, one: Learned, done: Written) -> str:
    pattern_id = derived_id(
        max(0, one.began_at), "pattern", keeping.tenant_id, one.pattern_type, *one.exemplars
    )
    metadata = one.figures if one.holds else {**one.figures, "inactive": UNPROVEN}
    done.created += tx.agents.run(
        "put_pattern",
        {
            "id": pattern_id,
            "tenant_id": keeping.tenant_id,
            "pattern_type": one.pattern_type,
            "content": one.content,
            "exemplar_trajectory_ids": written(one.exemplars),
            "confidence": one.confidence,
            "is_active": int(one.holds),
            "metadata": written(metadata),
            "now": tx.now,
        },
    )
    done.activated += one.holds
    return pattern_id


def _put_vector(tx: Any, keeping: Keeping, pattern_id: str, one: Learned) -> None:
    """Keep a pattern's vector, unless it is there as it is."""
    known = keeping.vectors.get(pattern_id)
    if known is not None and bool((known == one.vector).all()):
        return
    entry = Entry(
        id=pattern_id,
        vector=one.vector,
        tenant_id=keeping.tenant_id,
        metadata={"pattern_type": one.pattern_type},
        text=one.text,
        model=keeping.model,
    )
    keeping.store.put(tx, PATTERNS, [entry])


def deactivate_failing(tx: Any, tenant_id: str, uses: int, least: float) -> int:
    """Give up patterns that were followed more often than `uses` and helped too seldom."""
    asked = {"tenant": tenant_id, "uses": uses, "least": least}
    failing = [pattern_of(row) for row in tx.agents.rows("patterns_that_fail", asked)]
    for each in failing:
        set_active(tx, each, active=False, reason=LOW_SUCCESS)
    return len(failing)


def set_active(tx: Any, pattern: Pattern, *, active: bool, reason: str) -> int:
    """Switch a pattern on or off, and say why it is off."""
    metadata = {name: value for name, value in pattern.metadata.items() if name != "inactive"}
    if not active:
        metadata["inactive"] = reason
    told = {"id": pattern.id, "active": int(active), "metadata": written(metadata), "now": tx.now}
    changed: int = tx.agents.run("activate_pattern", told)
    return changed


async def read_known(
    app: "Penstock", store: "VectorStore", tenant_id: str
) -> tuple[list[Pattern], dict[str, Any]]:
    """The patterns of a tenant that are not superseded, the most used first, and their vectors."""
    rows = await app.read(lambda tx: tx.agents.rows("patterns_to_compare", (tenant_id,)))
    known = [pattern_of(row) for row in rows]
    return known, await store.get(PATTERNS, [each.id for each in known], tenant=tenant_id)


async def forget(app: "Penstock", whose: "Erasing") -> int:
    """Remove the patterns of a tenant, or those that show a person's trajectories; how many.

    The next training makes them anew of what others have done. It is asked before the person's
    trajectories are gone.
    """
    store: VectorStore = vectors_of(app)

    def work(tx: Any) -> int:
        asked = {"tenant": whose.tenant, "person": whose.person}
        shown = {row[0] for row in tx.agents.rows("trajectories_of_person", asked)}
        forgotten = 0
        for row in tx.agents.rows("patterns_of_tenant", {"tenant": whose.tenant}):
            pattern = pattern_of(row)
            of = {*pattern.exemplar_trajectory_ids, pattern.metadata.get("quotes")}
            if whose.person is None or of & shown:
                store.remove(tx, PATTERNS, [pattern.id], tenant=pattern.tenant_id)
                forgotten += tx.agents.run("drop_pattern", (pattern.id,))
        return forgotten

    return await app.transact(work)
