"""Queues and what holds them back: pauses, limits, rates, breakers, backpressure."""

from typing import Any

from markupsafe import Markup
from msgspec import Struct
from starlette.responses import Response

from penstock.model.breaker import BreakerPosition, BreakerState
from penstock.model.errors import InvalidOption
from penstock.model.limits import EVERY, LimitKind, LimitScope, LimitState
from penstock.model.pause import Pause, PauseScope
from penstock.model.pressure import Pressure, pressure
from penstock.server.access.scopes import Scope
from penstock.server.dashboard.paging import PageNumber, piece
from penstock.server.dashboard.route import page_router
from penstock.server.dashboard.views.overview import queue_rows
from penstock.server.dashboard.visit import Visit, WholeOperating, WholeReading
from penstock.server.observe import Watching
from penstock.server.problems import Refusal
from penstock.store.contract import QueueDepth, Window
from penstock.store.contract.rollups import HOUR_MS

router = page_router()

LIMITS_SHOWN = 500
LONGEST_REASON = 1_000
PAUSABLE = (PauseScope.QUEUE, PauseScope.TYPE, PauseScope.TENANT)


class QueueLine(Struct, frozen=True, kw_only=True):
    """A queue: what stands in it, how fast it empties, and what bounds it."""

    depth: QueueDepth
    bar: Markup
    per_minute: float
    pause: Pause | None
    limit: int
    pressure: Pressure


class BreakerLine(Struct, frozen=True):
    """A breaker and where it stands now."""

    state: BreakerState
    position: BreakerPosition
    tries_in_ms: int | None


@router.get("/queues")
async def queues(visit: WholeReading, observer: Watching, page: PageNumber = 1) -> Response:
    """Every queue with work in it or a hand on it, and all limits and breakers."""
    controls = visit.server.app.store.controls
    pauses = await controls.pauses()
    limits = await controls.limits()
    windows = (await observer.stats.over(HOUR_MS)).types
    lines = await _lines(visit, windows, pauses, limits)
    return await visit.page(
        "queues.html",
        "queues",
        piece=piece(lines, page),
        others=[p for p in pauses if p.scope in (PauseScope.TYPE, PauseScope.TENANT)],
        held_jobs=sum(p.scope is PauseScope.JOB for p in pauses),
        limits=limits[:LIMITS_SHOWN],
        breakers=[_breaker(state, visit.now) for state in await controls.breakers()],
        pausable=PAUSABLE,
        scopes=list(LimitScope),
        may_operate=visit.caller.may(Scope.OPERATE),
    )


@router.post("/queues/pause")
async def pause(visit: WholeOperating) -> Response:
    """Hold a queue, a type or a tenant back."""
    scope, name = _subject(visit, PAUSABLE)
    reason = visit.form.get("reason")
    if len(reason) > LONGEST_REASON:
        told = f"{len(reason):,} characters"
        raise InvalidOption("reason", told, f"at most {LONGEST_REASON:,}")
    held: Any = {scope: name}
    await visit.operator.controls.pause(reason=reason or None, **held)
    return visit.redirect("queues", f"The {scope} {name} is paused; what runs already runs on.")


@router.post("/queues/resume")
async def resume(visit: WholeOperating) -> Response:
    """Let it go on."""
    scope, name = _subject(visit, PAUSABLE)
    held: Any = {scope: name}
    was_paused = await visit.operator.controls.resume(**held)
    text = f"The {scope} {name} goes on." if was_paused else f"The {scope} {name} was not paused."
    return visit.redirect("queues", text)


@router.post("/queues/limits")
async def set_limit(visit: WholeOperating) -> Response:
    """Set limits that outlive a deploy; what is left empty stays as it is."""
    scope, name = _subject(visit, tuple(LimitScope))
    bounds: Any = {
        scope: name,
        "concurrency": _whole(visit, "concurrency"),
        "rate": visit.form.get("rate") or None,
        "depth": _whole(visit, "depth"),
    }
    await visit.operator.controls.set_limit(**bounds)
    return visit.redirect("queues", f"The limit of {scope} {name} is set.")


@router.post("/queues/limits/drop")
async def drop_limit(visit: WholeOperating) -> Response:
    """Take one limit away."""
    scope, name = _subject(visit, tuple(LimitScope))
    about: Any = {scope: name}
    dropped = await visit.operator.controls.drop_limit(kind=visit.form.get("kind"), **about)
    text = f"The limit of {scope} {name} is gone." if dropped else "There was no such limit."
    return visit.redirect("queues", text, bad=not dropped)


@router.post("/queues/breakers/reset")
async def reset_breaker(visit: WholeOperating) -> Response:
    """Close a breaker by hand and forget its failures."""
    name = visit.form.get("name")
    known = {state.breaker.name for state in await visit.server.app.store.controls.breakers()}
    if name not in known:
        raise Refusal(404, "There is no such breaker.")
    await visit.operator.controls.reset_breaker(name)
    return visit.redirect("queues", f"The breaker {name} is closed.")


async def _lines(
    visit: Visit, windows: list[Window], pauses: list[Pause], limits: list[LimitState]
) -> list[QueueLine]:
    held = {pause.name: pause for pause in pauses if pause.scope is PauseScope.QUEUE}
    bounds = _depth_limits(visit, limits)
    bounded = {s.limit.name for s in limits if s.limit.scope is LimitScope.QUEUE}
    depths = {depth.queue: depth for depth in (await visit.desk.glance()).depths}
    names = sorted({*depths, *held, *bounded} - {EVERY})
    rows = queue_rows([depths.get(name) or _empty(name) for name in names])
    return [
        QueueLine(
            depth=row.depth,
            bar=row.bar,
            per_minute=sum(w.per_minute for w in windows if w.queue == row.depth.queue),
            pause=held.get(row.depth.queue),
            limit=bounds.get(row.depth.queue, bounds[EVERY]),
            pressure=pressure(row.depth.queued, bounds.get(row.depth.queue, bounds[EVERY])),
        )
        for row in rows
    ]


def _depth_limits(visit: Visit, limits: list[LimitState]) -> dict[str, int]:
    """How many jobs each queue takes; `*` stands for those without a limit of their own."""
    found = (state.limit for state in limits if state.limit.kind is LimitKind.DEPTH)
    default = visit.server.app.settings.queue_limit
    return {EVERY: default} | {limit.name: limit.capacity for limit in found}


def _empty(queue: str) -> QueueDepth:
    return QueueDepth(
        queue=queue, pending=0, queued=0, in_progress=0, failed=0, oldest_queued_ms=None
    )


def _breaker(state: BreakerState, now: int) -> BreakerLine:
    return BreakerLine(state, state.position(now), state.tries_in_ms(now))


def _subject(visit: Visit, scopes: tuple[str, ...]) -> tuple[str, str]:
    """What a form is about; its name is checked where it is used."""
    scope = visit.form.get("scope")
    if scope not in scopes:
        raise InvalidOption("scope", scope, f"one of: {', '.join(scopes)}")
    return scope, visit.form.get("name")


def _whole(visit: Visit, name: str) -> int | None:
    text = visit.form.get(name)
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or len(text) > 12:
        raise InvalidOption(name, text, "a whole number")
    return int(text)
