"""Queues and what holds them back: pauses, limits, rates, breakers, backpressure."""

from collections import defaultdict
from collections.abc import Mapping

from markupsafe import Markup
from msgspec import Struct
from starlette.responses import Response

from penstock.model.controls import (
    PAUSABLE,
    BreakerPosition,
    BreakerState,
    DepthLimits,
    LimitScope,
    Pause,
    PauseScope,
    Pressure,
    pressure,
)
from penstock.model.errors import InvalidOption
from penstock.model.job import MAX_REASON
from penstock.operate.controls import QueueState, about, queue_states, unknown_warning
from penstock.operate.stats import Stats
from penstock.server.dashboard.render import Find, PageNumber, named, piece
from penstock.server.dashboard.request import OperateAllVisit, ReadAllVisit, Visit
from penstock.server.dashboard.route import page_router
from penstock.server.dashboard.views.overview import depth_bars
from penstock.store.contract import QueueDepth
from penstock.store.contract.metrics import DAY_MS, MINUTE_MS

router = page_router()

LIMITS_SHOWN = 500
RECENT_MS = 10 * MINUTE_MS


class QueueRow(Struct, frozen=True, kw_only=True):
    """A queue: what stands in it, how fast it empties, who serves it, and what bounds it."""

    depth: QueueDepth
    bar: Markup
    per_minute: float
    pause: Pause | None
    workers: int
    limit: int
    pressure: Pressure


class BreakerRow(Struct, frozen=True):
    """A breaker and where it stands now."""

    state: BreakerState
    position: BreakerPosition
    tries_in_ms: int | None


@router.get("/queues")
async def queues(visit: ReadAllVisit, page: PageNumber = 1, find: Find = "") -> Response:
    """Every known queue, and all pauses, limits and breakers."""
    controls = visit.server.app.store.controls
    pauses = await controls.pauses()
    limits = await controls.limits()
    recent = await visit.server.observer.stats.over(RECENT_MS)
    depths = (await visit.server.summary.get()).depths
    store = visit.server.app.store
    day = await store.metrics.window(DAY_MS)
    states = queue_states(depths, pauses, limits, await store.workers.list(), day)
    shown = piece(named(find, states, lambda state: state.depth.queue), page)
    bounds = DepthLimits(limits, visit.server.app.settings.queue_limit)
    return await visit.page(
        "queues.html",
        "queues",
        piece=shown,
        rows=_rows(shown.rows, _per_minute(recent), bounds),
        find=find,
        others=[p for p in pauses if p.scope in (PauseScope.TYPE, PauseScope.TENANT)],
        paused_jobs=sum(p.scope is PauseScope.JOB for p in pauses),
        limits=limits[:LIMITS_SHOWN],
        limits_in_all=len(limits),
        breakers=[_breaker(state, visit.now) for state in await controls.breakers()],
        pausable=PAUSABLE,
        scopes=list(LimitScope),
    )


@router.post("/queues/pause")
async def pause(visit: OperateAllVisit) -> Response:
    """Hold a queue, a type or a tenant back."""
    scope, name = _subject(visit, PAUSABLE)
    reason = visit.form.words("reason", MAX_REASON)
    warning = await unknown_warning(visit.server.app, **about(scope, name))
    await visit.operator.controls.pause(reason=reason, **about(scope, name))
    told = f"The {scope} {name} is paused; jobs that are already running go on."
    return visit.redirect("queues", told if warning is None else f"{told} {warning}")


@router.post("/queues/resume")
async def resume(visit: OperateAllVisit) -> Response:
    """Resume it."""
    scope, name = _subject(visit, PAUSABLE)
    was_paused = await visit.operator.controls.resume(**about(scope, name))
    text = (
        f"The {scope} {name} is resumed." if was_paused else f"The {scope} {name} was not paused."
    )
    return visit.redirect("queues", text)


@router.post("/queues/limits")
async def set_limit(visit: OperateAllVisit) -> Response:
    """Set limits that outlive a deploy; what is left empty stays as it is."""
    scope, name = _subject(visit, tuple(LimitScope))
    await visit.operator.controls.set_limit(
        concurrency=visit.form.whole("concurrency"),
        rate=visit.form.get("rate") or None,
        depth=visit.form.whole("depth"),
        **about(scope, name),
    )
    return visit.redirect("queues", f"The limit of {scope} {name} is set.")


@router.post("/queues/limits/remove")
async def remove_limit(visit: OperateAllVisit) -> Response:
    """Take one limit away."""
    scope, name = _subject(visit, tuple(LimitScope))
    await visit.operator.controls.remove_limit(kind=visit.form.get("kind"), **about(scope, name))
    return visit.redirect("queues", f"The limit of {scope} {name} is removed.")


@router.post("/queues/breakers/reset")
async def reset_breaker(visit: OperateAllVisit) -> Response:
    """Close a breaker by hand and forget its failures."""
    name = visit.form.get("name")
    await visit.operator.controls.reset_breaker(name)
    return visit.redirect("queues", f"The breaker {name} is closed.")


def _per_minute(recent: Stats) -> dict[str, float]:
    """How many jobs of each queue complete a minute, since the first of them."""
    began = next((point.at for point in recent.series if point.executions), recent.at)
    minutes = max(1.0, (recent.at - began) / MINUTE_MS)
    found: dict[str, float] = defaultdict(float)
    for window in recent.types:
        found[window.queue] += window.completed / minutes
    return found


def _rows(
    states: list[QueueState], per_minute: Mapping[str, float], bounds: DepthLimits
) -> list[QueueRow]:
    bars = depth_bars([state.depth for state in states])
    return [
        QueueRow(
            depth=state.depth,
            bar=each.bar,
            per_minute=per_minute.get(state.depth.queue, 0.0),
            pause=state.pause,
            workers=state.workers,
            limit=bounds.of(state.depth.queue),
            pressure=pressure(state.depth.queued, bounds.of(state.depth.queue)),
        )
        for state, each in zip(states, bars, strict=True)
    ]


def _breaker(state: BreakerState, now: int) -> BreakerRow:
    return BreakerRow(state, state.position(now), state.tries_in_ms(now))


def _subject(visit: Visit, scopes: tuple[str, ...]) -> tuple[str, str]:
    """What a form is about; its name is checked where it is used."""
    scope = visit.form.get("scope")
    if scope not in scopes:
        raise InvalidOption("scope", scope, f"one of: {', '.join(scopes)}")
    return scope, visit.form.get("name")
