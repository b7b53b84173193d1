"""Reasons somebody set up: pauses, limits and circuit breakers."""

from collections.abc import Iterator

from penstock.model.controls import BreakerPosition, LimitKind, LimitState, Pause, PauseScope
from penstock.model.explain import Reason, ReasonKind
from penstock.model.states import Status
from penstock.model.wording import moment, span
from penstock.operate.reasons.words import brief, few, may_be_claimed, waits
from penstock.store.contract import Standing

KINDS = {
    PauseScope.JOB: ReasonKind.JOB_PAUSED,
    PauseScope.QUEUE: ReasonKind.QUEUE_PAUSED,
    PauseScope.TYPE: ReasonKind.TYPE_PAUSED,
    PauseScope.TENANT: ReasonKind.TENANT_PAUSED,
}


def paused(look: Standing) -> Iterator[Reason]:
    """Somebody holds the job, its queue, its type or its tenant."""
    if not waits(look):
        return
    for pause in look.pauses:
        yield Reason(
            kind=KINDS[pause.scope],
            sentence=_pause_sentence(pause, look.now),
            by=pause.paused_by,
            since_at=pause.created_at,
        )
    named = any(pause.scope is PauseScope.JOB for pause in look.pauses)
    if look.job.status is Status.PAUSED and not named:
        told = f"It is paused. Resume it with `penstock resume job {look.job.id}`."
        yield Reason(kind=ReasonKind.JOB_PAUSED, sentence=told)


def breaker_open(look: Standing) -> Iterator[Reason]:
    """What it depends on is down."""
    for state in look.breakers:
        if may_be_claimed(look) and state.position(look.now) is BreakerPosition.OPEN:
            name, opened = state.breaker.name, state.opened_at or look.now
            wait = state.tries_in_ms(look.now) or 0
            told = (
                f"Breaker {name!r} has been open since {moment(opened, look.now)} after "
                f"{state.failed} failures; one job tries again in {span(wait)}. Close it now with "
                f"`penstock breakers reset {name}`."
            )
            until = look.now + wait
            yield Reason(
                kind=ReasonKind.BREAKER_OPEN, sentence=told, since_at=opened, until_at=until
            )


def breaker_probing(look: Standing) -> Iterator[Reason]:
    """One job tries whether what it depends on is up again."""
    for state in look.breakers:
        half_open = state.position(look.now) is BreakerPosition.HALF_OPEN
        if may_be_claimed(look) and half_open and state.probe_id is not None:
            told = (
                f"Breaker {state.breaker.name!r} lets one job try at a time, and job "
                f"{state.probe_id} is trying now; if it completes, all go on."
            )
            kind = ReasonKind.BREAKER_PROBING
            yield Reason(kind=kind, sentence=told, jobs=(state.probe_id,), since_at=state.opened_at)


def limit_full(look: Standing) -> Iterator[Reason]:
    """As many run at once as may."""
    for state in look.limits:
        if may_be_claimed(look) and _used_up(state, LimitKind.CONCURRENCY):
            named = few(state.holders, state.used) or "on their way to a worker"
            told = (
                f"{_about(state)} may have {state.limit.capacity:,} running at once, and "
                f"{state.used:,} {'is' if state.used == 1 else 'are'}: {named}. "
                f"{_change(state, '--concurrency N')}"
            )
            yield Reason(kind=ReasonKind.LIMIT_FULL, sentence=told, jobs=state.holders)


def rate_used_up(look: Standing) -> Iterator[Reason]:
    """As many were started as may in a while."""
    for state in look.limits:
        if may_be_claimed(look) and _used_up(state, LimitKind.RATE):
            wait = state.frees_in_ms or 0
            told = (
                f"{_about(state)} may start {state.limit.capacity:,} per "
                f"{span(state.limit.interval_ms)}, and that many have started; the next may in "
                f"{span(wait)}. {_change(state, '--rate 10/s')}"
            )
            until = look.now + wait
            yield Reason(kind=ReasonKind.RATE_USED_UP, sentence=told, until_at=until)


def _used_up(state: LimitState, kind: LimitKind) -> bool:
    return state.limit.kind is kind and state.used >= state.limit.capacity


def _about(state: LimitState) -> str:
    return f"{state.limit.scope.capitalize()} {state.limit.name!r}"


def _change(state: LimitState, option: str) -> str:
    limit = state.limit
    return f"Change it with `penstock limits set {limit.scope} {limit.name} {option}`."


def _pause_sentence(pause: Pause, now: int) -> str:
    what = "It" if pause.scope is PauseScope.JOB else f"{pause.scope.capitalize()} {pause.name!r}"
    who = f" by {pause.paused_by}" if pause.paused_by else ""
    why = f": {brief(pause.reason)}." if pause.reason else "."
    return (
        f"{what} has been paused since {moment(pause.created_at, now)}{who}{why} "
        f"Resume it with `penstock resume {pause.scope} {pause.name}`."
    )
