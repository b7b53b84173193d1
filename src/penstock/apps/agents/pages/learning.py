"""Learning in the dashboard: sessions with what came of them, patterns, and classifiers."""

from typing import Any

from msgspec import Struct

from penstock.apps.agents.access import actor_of, agents_of, given, named_tenant
from penstock.apps.agents.learning.records import (
    ANTI_PATTERN,
    VERDICTS,
    WORKFLOW,
    ClassifierRow,
    Trajectory,
)
from penstock.apps.agents.sessions.records import STATUSES, SessionFilter, place
from penstock.extension import Request
from penstock.model.errors import InvalidOption

SHOWN = 50
EXEMPLARS = 5
TRAINED = 8
TURNS = 200
VERDICT_COLOURS = {
    "success": "completed",
    "failure": "critical",
    "partial": "warning",
    "unknown": "quiet",
}
STATUS_COLOURS = {
    "active": "in_progress",
    "closed": "completed",
    "expired": "cancelled",
    "archived": "quiet",
}
ROLES = {"user": "Person", "assistant": "Agent", "tool": "Tool", "system": "System"}
TYPES = {WORKFLOW: "works", ANTI_PATTERN: "fails"}
ACTIVE = {"": None, "active": True, "inactive": False}


class Trained(Struct, frozen=True, kw_only=True):
    """A classifier with the figures that people ask for."""

    row: ClassifierRow
    trajectories: int
    held_out: int
    accuracy: float | None
    previous: float | None


async def show_sessions(request: Request) -> dict[str, Any]:
    """List sessions of agents, those opened last first."""
    told = given(request, "tenant", "user", "status")
    before = request.query.get("before", "")
    where = SessionFilter(
        tenant=named_tenant(request, told["tenant"] or None),
        user=told["user"] or None,
        status=told["status"] or None,
        before=before or None,
        limit=SHOWN,
    )
    rows = await agents_of(request).sessions.list(where)
    return {
        "rows": rows,
        "given": told,
        "before": before,
        "following": place(rows[-1]) if len(rows) == SHOWN else None,
        "statuses": STATUSES,
        "colours": STATUS_COLOURS,
        "bound": request.tenant is not None,
    }


async def show_session(request: Request) -> dict[str, Any]:
    """Show one session: its turns, and the tasks that were seen in it."""
    agents, session_id = agents_of(request), request.path["session_id"]
    session = await agents.sessions.get(session_id, tenant=request.tenant)
    turns = await agents.sessions.turns(session_id, tenant=request.tenant, limit=TURNS)
    tasks = await agents.learning.trajectories(tenant=request.tenant, session=session_id)
    return {
        "session": session,
        "turns": turns,
        "tasks": list(reversed(tasks)),
        "roles": ROLES,
        "colours": STATUS_COLOURS,
        "verdicts": VERDICT_COLOURS,
    }


async def show_patterns(request: Request) -> dict[str, Any]:
    """List patterns with how they fare, what they were learned from, and classifiers."""
    told = given(request, "tenant", "type", "state")
    before = request.query.get("before", "")
    tenant = named_tenant(request, told["tenant"] or None)
    learning = agents_of(request).learning
    rows = await learning.patterns(
        tenant=tenant,
        active=ACTIVE.get(told["state"]),
        pattern_type=told["type"] or None,
        before=before or None,
        limit=SHOWN,
    )
    latest = await learning.trajectories(tenant=tenant, limit=500)
    known = {each.id: each for each in latest}
    return {
        "rows": rows,
        "exemplars": {
            row.id: [known[each] for each in row.exemplar_trajectory_ids if each in known][
                :EXEMPLARS
            ]
            for row in rows
        },
        "given": told,
        "before": before,
        "following": rows[-1].id if len(rows) == SHOWN else None,
        "types": TYPES,
        "figures": _figures(latest),
        "verdicts": VERDICT_COLOURS,
        "classifiers": [
            _trained(each) for each in await learning.classifiers(tenant=tenant, limit=TRAINED)
        ],
        "bound": request.tenant is not None,
    }


async def switch_pattern(request: Request) -> str:
    """Switch a pattern on or off."""
    action, pattern_id = request.form.get("action", ""), request.form.get("pattern", "")
    if action not in ("activate", "deactivate"):
        raise InvalidOption("action", action, "one of: activate, deactivate")
    async with actor_of(request).doing(f"pattern.{action}", f"pattern:{pattern_id}"):
        pattern = await agents_of(request).learning.activate(
            pattern_id, active=action == "activate", tenant=request.tenant
        )
    words = "is used" if pattern.is_active else "is no longer used"
    return f"The pattern {words}."


def _figures(latest: list[Trajectory]) -> dict[str, int]:
    counts: dict[str, int] = dict.fromkeys(VERDICTS, 0)
    for each in latest:
        counts[each.verdict] = counts.get(each.verdict, 0) + 1
    return counts


def _trained(row: ClassifierRow) -> Trained:
    training = row.figures.get("training", {})
    return Trained(
        row=row,
        trajectories=training.get("trajectories", 0),
        held_out=training.get("heldOut", 0),
        accuracy=training.get("accuracy"),
        previous=training.get("previousAccuracy"),
    )
