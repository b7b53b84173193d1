"""What holds work back, in somebody's hands: pauses, limits, breakers."""

from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from msgspec import Struct

from penstock.app.declare import LimitFields, Subject, limits_of, named_as, subject_of
from penstock.app.lookups import check_words
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
from penstock.model.not_found import BreakerNotFound, LimitNotFound
from penstock.model.options import check_text
from penstock.operate.actor import PROGRAM, Actor
from penstock.operate.jobs import Jobs
from penstock.store.contract import JobFilter, QueueDepth, WorkerInfo
from penstock.store.contract.metrics import DAY_MS, Window

if TYPE_CHECKING:
    from penstock.app.handle import JobHandle
    from penstock.app.job_type import JobType
    from penstock.app.penstock import Penstock
    from penstock.store.contract.controls import Controls as StoredControls


class QueueState(Struct, frozen=True):
    """A queue: what stands in it, whether it is paused, its own limits, and who serves it."""

    depth: QueueDepth
    pause: Pause | None
    limits: list[LimitState]
    workers: int = 0
    """How many live workers take jobs from it."""


def queue_states(
    depths: Iterable[QueueDepth],
    pauses: Iterable[Pause],
    limits: Iterable[LimitState],
    workers: Iterable[WorkerInfo] = (),
    windows: Iterable[Window] = (),
) -> list[QueueState]:
    """Every queue with jobs, every one that is paused or limited, and those of live workers.

    And those in which jobs ended in a window of time.
    """
    deep = {depth.queue: depth for depth in depths}
    live = [worker for worker in workers if worker.alive]
    served = {name for each in live for name in (*(each.queues or ()), *each.declared_queues)}
    used = {window.queue for window in windows}
    held = {pause.name: pause for pause in pauses if pause.scope is PauseScope.QUEUE}
    bounds: dict[str, list[LimitState]] = {}
    for state in limits:
        if state.limit.scope is LimitScope.QUEUE:
            bounds.setdefault(state.limit.name, []).append(state)
    return [
        QueueState(
            deep.get(name) or QueueDepth(queue=name),
            held.get(name),
            bounds.get(name, []),
            sum(each.queues is None or name in each.queues for each in live),
        )
        for name in sorted({*deep, *held, *bounds, *served, *used} - {EVERY, ""})
    ]


_SCOPES = tuple(scope.value for scope in PauseScope)


class PauseFields(TypedDict, total=False):
    """What to pause, in keyword arguments: exactly one of these."""

    job: "str | JobHandle[Any]"
    queue: str
    type: "str | JobType[..., ..., Any]"
    tenant: str


def about(scope: str, name: str) -> Any:
    """The keyword argument that names something: `about("queue", "mail")` is `queue="mail"`."""
    return {str(scope): name}


class Controls:
    """`app.controls`: changed while everything runs; the next claim of every worker obeys."""

    def __init__(self, app: "Penstock", actor: Actor = PROGRAM) -> None:
        self._app = app
        self._actor = actor

    async def pause(
        self, *, reason: str | None = None, by: str | None = None, **what: Unpack[PauseFields]
    ) -> Pause:
        """Hold jobs back: `pause(queue="mail", reason="deploy")`; what runs already runs on.

        `by` is whom others see, if not the actor.
        """
        scope, name = pause_subject(what)
        for option, words in (("reason", reason), ("by", by)):
            check_words(option, words)
        said = await self._actor.hashed(reason)
        async with self._doing("pause", scope, name, reason_hash=said):
            return await self._store.pause(
                scope, name, reason=reason, by=by or self._actor.signature
            )

    async def resume(self, **what: Unpack[PauseFields]) -> bool:
        """Let them go on, with their own times and order; return whether they were paused."""
        scope, name = pause_subject(what)
        async with self._doing("resume", scope, name):
            return await self._store.resume(scope, name)

    async def queues(self, tenant: str | None = None) -> list[QueueState]:
        """Every known queue, also while it is empty; of one tenant, those with its jobs."""
        store = self._app.store
        whose = self._actor.tenant_of(tenant)
        depths = await store.metrics.depths(whose)
        if whose is not None:
            return queue_states(depths, (), ())
        return queue_states(
            depths,
            await self._store.pauses(),
            await self._store.limits(),
            await store.workers.list(),
            await store.metrics.window(DAY_MS),
        )

    async def pauses(self) -> list[Pause]:
        """Return everything that is paused, the oldest first."""
        return await self._store.pauses()

    async def set_limit(self, **limit: Unpack[LimitFields]) -> None:
        """Set a limit that outlives a deploy: `set_limit(key="openai", concurrency=5)`.

        A kind that is left out stays as it is.
        """
        limits = limits_of(limit, by_operator=True)
        bounds: dict[str, Any] = {each.kind.value: each.capacity for each in limits}
        subject = f"{limits[0].scope}:{limits[0].name}"
        async with self._actor.doing("limit.set", subject, **bounds):
            await self._store.set_limits(limits)

    async def remove_limit(self, *, kind: str | None = None, **about: Unpack[Subject]) -> None:
        """Take limits away, all kinds or one: `remove_limit(key="openai", kind="rate")`.

        LimitNotFound if there is none.
        """
        scope, name = subject_of(about)
        kinds = limit_kinds(kind)
        async with self._actor.doing("limit.remove", f"{scope}:{name}", kind=kind):
            if not any([await self._store.remove_limit(scope, name, each) for each in kinds]):
                raise LimitNotFound(scope, name, kind)

    async def limits(self) -> list[LimitState]:
        """Return all limits, and how much of each is taken."""
        return await self._store.limits()

    async def breakers(self) -> list[BreakerState]:
        """Return all circuit breakers."""
        return await self._store.breakers()

    async def reset_breaker(self, name: str) -> None:
        """Close a breaker by hand; BreakerNotFound if there is none of this name."""
        check_text("name", name)
        async with self._actor.doing("breaker.reset", f"breaker:{name}"):
            if not await self._store.reset_breaker(name):
                raise BreakerNotFound(name)

    @property
    def _store(self) -> "StoredControls":
        return self._app.store.controls

    def _doing(
        self, action: str, scope: PauseScope, name: str, **details: Any
    ) -> AbstractAsyncContextManager[object]:
        """Record an action; a single job has to be of the actor's tenant."""
        if scope is PauseScope.JOB:
            return Jobs(self._app, self._actor).doing(action, name)
        return self._actor.doing(action, f"{scope}:{name}", **details)


async def unknown_warning(app: "Penstock", **what: Unpack[PauseFields]) -> str | None:
    """Return a sentence if nobody knows the queue or the type that is about to be paused."""
    scope, name = pause_subject(what)
    if scope is PauseScope.QUEUE:
        known = {state.depth.queue for state in await Controls(app).queues()}
    elif scope is PauseScope.TYPE:
        live = [worker for worker in await app.store.workers.list() if worker.alive]
        recent = await app.store.metrics.window(DAY_MS)
        known = {each for worker in live for each in worker.types} | {w.type for w in recent}
    else:
        return None
    if name in known or await app.store.reader.find(JobFilter(limit=1, **about(scope, name))):
        return None
    close = get_close_matches(name, sorted(known), 3)
    meant = f"; did you mean {' or '.join(map(repr, close))}?" if close else "."
    return f"No job and no live worker uses the {scope} {name!r}{meant}"


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


def limit_kinds(kind: str | None) -> list[LimitKind]:
    """The kinds that are meant by one of their names, or by none: all."""
    if kind is not None and kind not in list(LimitKind):
        raise InvalidOption("kind", kind, f"one of: {', '.join(LimitKind)}")
    return list(LimitKind) if kind is None else [LimitKind(kind)]
