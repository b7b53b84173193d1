"""What an operator may do to work as a whole: pause it, limit it, reset a breaker."""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from msgspec import Struct

from penstock.app.declare import LimitFields, Subject, limits_of, named_as, subject_of
from penstock.app.lookups import check_text, check_words
from penstock.model.controls import (
    EVERY,
    BreakerState,
    LimitKind,
    LimitScope,
    LimitState,
    Pause,
    PauseScope,
)
from penstock.model.errors import InvalidOption
from penstock.store.contract import QueueDepth

if TYPE_CHECKING:
    from penstock.app.handle import JobHandle
    from penstock.app.job_type import JobType
    from penstock.store.contract import Store


class QueueState(Struct, frozen=True):
    """A queue: what stands in it, whether it is held back, and its own limits."""

    depth: QueueDepth
    pause: Pause | None
    limits: list[LimitState]


def queue_states(
    depths: Iterable[QueueDepth], pauses: Iterable[Pause], limits: Iterable[LimitState]
) -> list[QueueState]:
    """Every queue with waiting or running jobs, and every one that is paused or limited."""
    deep = {depth.queue: depth for depth in depths}
    held = {pause.name: pause for pause in pauses if pause.scope is PauseScope.QUEUE}
    bounds: dict[str, list[LimitState]] = {}
    for state in limits:
        if state.limit.scope is LimitScope.QUEUE:
            bounds.setdefault(state.limit.name, []).append(state)
    return [
        QueueState(deep.get(name) or QueueDepth(queue=name), held.get(name), bounds.get(name, []))
        for name in sorted({*deep, *held, *bounds} - {EVERY})
    ]


_SCOPES = tuple(scope.value for scope in PauseScope)


class PauseFields(TypedDict, total=False):
    """What to pause, in keyword arguments: exactly one of these."""

    job: "str | JobHandle[Any]"
    queue: str
    type: "str | JobType[..., ..., Any]"
    tenant: str


class Controls:
    """Changed while everything runs; the next claim of every worker obeys."""

    def __init__(self, store: "Store") -> None:
        self._store = store

    async def pause(
        self, *, reason: str | None = None, by: str | None = None, **what: Unpack[PauseFields]
    ) -> Pause:
        """Hold jobs back: `pause(queue="mail", reason="deploy")`; what runs already runs on."""
        scope, name = pause_subject(what)
        for option, words in (("reason", reason), ("by", by)):
            check_words(option, words)
        return await self._store.controls.pause(scope, name, reason=reason, by=by)

    async def resume(self, **what: Unpack[PauseFields]) -> bool:
        """Let them go on, with their own times and order; whether they were paused."""
        return await self._store.controls.resume(*pause_subject(what))

    async def pauses(self) -> list[Pause]:
        """Everything that is paused, the oldest first."""
        return await self._store.controls.pauses()

    async def set_limit(self, **limit: Unpack[LimitFields]) -> None:
        """Set a limit that outlives a deploy: `set_limit(key="openai", concurrency=5)`."""
        await self._store.controls.set_limits(limits_of(limit, by_operator=True))

    async def remove_limit(self, *, kind: str | None = None, **about: Unpack[Subject]) -> bool:
        """Take limits away, all kinds or one: `remove_limit(key="openai", kind="rate")`."""
        scope, name = subject_of(about)
        if kind is not None and kind not in list(LimitKind):
            raise InvalidOption("kind", kind, f"one of: {', '.join(LimitKind)}")
        kinds = list(LimitKind) if kind is None else [LimitKind(kind)]
        removed = [await self._store.controls.remove_limit(scope, name, each) for each in kinds]
        return any(removed)

    async def limits(self) -> list[LimitState]:
        """All limits, and how much of each is taken."""
        return await self._store.controls.limits()

    async def breakers(self) -> list[BreakerState]:
        """All circuit breakers."""
        return await self._store.controls.breakers()

    async def reset_breaker(self, name: str) -> bool:
        """Close a breaker by hand; whether there is one of this name."""
        return await self._store.controls.reset_breaker(check_text("name", name))


def pause_subject(fields: Any) -> tuple[PauseScope, str]:
    """What a pause is about, from keyword arguments of which exactly one may be given."""
    given = {name: value for name, value in fields.items() if value is not None}
    if len(given) != 1 or next(iter(given)) not in _SCOPES:
        named = ", ".join(given) or "nothing"
        raise InvalidOption("pause", named, f"of exactly one of: {', '.join(_SCOPES)}")
    ((scope, value),) = given.items()
    name = named_as(scope, value)
    if name == EVERY:
        raise InvalidOption(scope, name, f"the name of one {scope}; pause each of them by itself")
    return PauseScope(scope), name
