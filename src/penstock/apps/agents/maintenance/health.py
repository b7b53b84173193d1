"""Tenants that come near their quotas, or have used them up: alerts, figures, the overview."""

from typing import TYPE_CHECKING, Any

from penstock.apps.agents.maintenance.quotas import Measure, State, amount
from penstock.extension import Concern, Reading, Rule
from penstock.model.wording import counted

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

SHOWN = 1_000

Row = tuple[str, str, str, float]
"""A tenant, what it is about, its state, and how much it had used then."""


async def used_up(app: "Penstock", _: Rule) -> Reading:
    """How many quotas are used up, so that a tenant is slowed down or kept out."""
    return _reading(await _standings(app, State.THROTTLED, State.BLOCKED))


async def nearly_used_up(app: "Penstock", _: Rule) -> Reading:
    """How many are used so far that somebody should know."""
    return _reading(await _standings(app, State.WARNED))


async def states(app: "Penstock") -> dict[tuple[str, ...], float]:
    """How many quotas are in which state, but for those with room."""
    found: dict[tuple[str, ...], float] = {}
    for _, measure, state, _ in await _standings(app, *State):
        found[measure, state] = found.get((measure, state), 0) + 1
    return found


async def concerns(app: "Penstock") -> list[Concern]:
    """Tenants that are kept out or slowed down, for the overview."""
    rows = await _standings(app, State.THROTTLED, State.BLOCKED)
    if not rows:
        return []
    return [Concern("degraded", f"{counted(len(rows), 'quota')} used up", _told(rows))]


def _reading(rows: list[Row]) -> Reading:
    return Reading(len(rows), _told(rows) if rows else "")


def _told(rows: list[Row]) -> str:
    tenant, measure, state, used = rows[0]
    name = f"tenant {tenant}" if tenant else "what has no tenant"
    told = f"{name} is {state}, with {amount(Measure(measure), used)} of {measure} used"
    return told if len(rows) == 1 else f"{told}, and {len(rows) - 1} more"


async def _standings(app: "Penstock", *wanted: State) -> list[Row]:
    if (app.beside or app.store).tables is None:
        return []
    rows: list[Any] = await app.read(lambda tx: tx.agents.rows("standings", (SHOWN,)))
    return [row for row in rows if row[2] in wanted]
