"""What holds work back, for the whole installation: queues, pauses, limits, breakers."""

from typing import Annotated, Any

from fastapi import Query
from pydantic import ConfigDict, Field

from penstock.client.documents import document
from penstock.model.breaker import BreakerPosition
from penstock.model.limits import LimitKind, LimitScope, LimitState
from penstock.model.pause import PauseScope
from penstock.server.access.guard import WholeOperator, WholeReader
from penstock.server.api.models import Document, Moment, Name
from penstock.server.api.router import api_router
from penstock.server.problems import Refusal
from penstock.server.state import Here, Server
from penstock.store.contract import QueueDepth

router = api_router("/api", "queues")

Subject = Annotated[str, Field(min_length=1, max_length=255)]


class Pause(Document):
    """Who paused what, when and why."""

    scope: PauseScope
    name: str
    reason: str | None
    paused_by: str | None
    created_at: Moment


class NewPause(Document):
    """What to hold back: a queue, a type or a tenant."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"scope": "type", "name": "send_mail", "reason": "moving"}]}
    )

    scope: PauseScope
    name: Subject
    reason: str | None = Field(None, max_length=1000)


class PauseReason(Document):
    """Why a queue is held back."""

    reason: str | None = Field(None, max_length=1000, examples=["deploy"])


class Pauses(Document):
    """Everything that is paused, the oldest first."""

    pauses: list[Pause]


class Resumed(Document):
    """Whether it was paused."""

    resumed: bool


class Limit(Document):
    """A limit, and how much of it is taken."""

    scope: LimitScope
    name: str
    kind: LimitKind
    capacity: int
    interval_ms: int | None
    by_operator: bool
    used: int
    frees_in_ms: int | None


class Limits(Document):
    """All limits, by scope and name."""

    limits: list[Limit]


class NewLimit(Document):
    """Limits to set; the name `*` means each one for itself."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [{"scope": "key", "name": "openai", "concurrency": 3, "rate": "60/min"}]
        }
    )

    scope: LimitScope
    name: Subject
    concurrency: int | None = Field(None, ge=0, le=1_000_000_000)
    rate: str | None = Field(None, max_length=40, examples=["60/min"])
    depth: int | None = Field(None, ge=0, le=1_000_000_000, description="For queues only.")


class Queue(Document):
    """How much stands in a queue, and what bounds it."""

    queue: str
    pending: int
    queued: int
    in_progress: int
    failed: int
    blocked: int = Field(description="Of the pending ones, those that wait for other jobs.")
    paused: int = Field(description="Jobs that are held back one by one.")
    oldest_queued_ms: int | None
    pause: Pause | None = Field(description="Set while the whole queue is held back.")
    limits: list[Limit]


class Queues(Document):
    """Every queue with waiting or running jobs, and every one that is paused or limited."""

    queues: list[Queue]


class Breaker(Document):
    """A circuit breaker, and what has happened to it."""

    name: str
    types: list[str]
    failures: int
    cool_down_ms: int
    position: BreakerPosition
    failed: int
    opened_at: Moment | None
    probe_id: str | None


class Breakers(Document):
    """All circuit breakers, by name."""

    breakers: list[Breaker]


class BreakerReset(Document):
    """The breaker that was closed."""

    name: str


@router.get("/queues", operation_id="list_queues")
async def list_queues(server: Here, _: WholeReader) -> Queues:
    """How much stands in every queue."""
    store = server.app.store
    depths = {depth.queue: depth for depth in await store.metrics.depths()}
    held = {p.name: p for p in await store.controls.pauses() if p.scope is PauseScope.QUEUE}
    bounded: dict[str, list[Limit]] = {}
    for state in await store.controls.limits():
        if state.limit.scope is LimitScope.QUEUE:
            bounded.setdefault(state.limit.name, []).append(_limit(state))
    names = sorted({*depths, *held, *bounded} - {"*"})
    found = [
        Queue.model_construct(
            **_depth(depths.get(name), name),
            pause=None if name not in held else Pause.model_construct(**document(held[name])),
            limits=bounded.get(name, []),
        )
        for name in names
    ]
    return Queues.model_construct(queues=found)


@router.post("/queues/{queue:path}/pause", operation_id="pause_queue")
async def pause_queue(
    server: Here, caller: WholeOperator, queue: str, why: PauseReason | None = None
) -> Pause:
    """Hold a queue back; what runs already runs on."""
    reason = None if why is None else why.reason
    found = await server.operator(caller).controls.pause(queue=queue, reason=reason)
    return Pause.model_construct(**document(found))


@router.post("/queues/{queue:path}/resume", operation_id="resume_queue")
async def resume_queue(server: Here, caller: WholeOperator, queue: str) -> Resumed:
    """Let a queue go on."""
    return Resumed(resumed=await server.operator(caller).controls.resume(queue=queue))


@router.get("/pauses", operation_id="list_pauses")
async def list_pauses(server: Here, _: WholeReader) -> Pauses:
    """Everything that is paused: queues, types, tenants and single jobs."""
    found = await server.app.store.controls.pauses()
    return Pauses.model_construct(pauses=[Pause.model_construct(**document(p)) for p in found])


@router.post("/pauses", operation_id="pause", status_code=201)
async def pause(server: Here, caller: WholeOperator, new: NewPause) -> Pause:
    """Hold a queue, a type or a tenant back."""
    held: Any = {new.scope.value: new.name}
    found = await server.operator(caller).controls.pause(reason=new.reason, **held)
    return Pause.model_construct(**document(found))


@router.delete("/pauses", operation_id="resume")
async def resume(
    server: Here, caller: WholeOperator, scope: PauseScope, name: Annotated[Subject, Query()]
) -> Resumed:
    """Let it go on."""
    held: Any = {scope.value: name}
    return Resumed(resumed=await server.operator(caller).controls.resume(**held))


@router.get("/limits", operation_id="list_limits", tags=["limits"])
async def list_limits(server: Here, _: WholeReader) -> Limits:
    """All limits, and how much of each is taken."""
    found = await server.app.store.controls.limits()
    return Limits.model_construct(limits=[_limit(state) for state in found])


@router.put("/limits", operation_id="set_limits", tags=["limits"])
async def set_limits(server: Here, caller: WholeOperator, new: NewLimit) -> Limits:
    """Set limits that outlive a deploy; a kind that is left out stays as it is."""
    about: Any = {new.scope.value: new.name}
    await server.operator(caller).controls.set_limit(
        **about,
        concurrency=new.concurrency,
        rate=new.rate,
        depth=new.depth,
    )
    return await _limits_of(server, new.scope, new.name)


@router.delete("/limits", operation_id="drop_limits", tags=["limits"])
async def drop_limits(
    server: Here,
    caller: WholeOperator,
    scope: LimitScope,
    name: Annotated[Subject, Query()],
    kind: LimitKind | None = None,
) -> Limits:
    """Take limits away, all kinds or one; what is left is answered."""
    about: Any = {scope.value: name}
    if not await server.operator(caller).controls.drop_limit(kind=kind, **about):
        raise Refusal(404, f"There is no such limit of {scope.value} {name!r}.")
    return await _limits_of(server, scope, name)


@router.get("/breakers", operation_id="list_breakers", tags=["breakers"])
async def list_breakers(server: Here, _: WholeReader) -> Breakers:
    """All circuit breakers, by name."""
    store = server.app.store
    now = store.clock.now()
    return Breakers.model_construct(
        breakers=[
            Breaker.model_construct(
                **document(state.breaker),
                position=state.position(now),
                **{n: v for n, v in document(state).items() if n != "breaker"},
            )
            for state in await store.controls.breakers()
        ]
    )


@router.post("/breakers/{name:path}/reset", operation_id="reset_breaker", tags=["breakers"])
async def reset_breaker(server: Here, caller: WholeOperator, name: Name) -> BreakerReset:
    """Close a breaker by hand and forget its failures."""
    if not await server.operator(caller).controls.reset_breaker(name):
        raise Refusal(404, f"There is no breaker {name!r}.")
    return BreakerReset(name=name)


def _depth(depth: QueueDepth | None, queue: str) -> dict[str, Any]:
    if depth is not None:
        return document(depth)
    counted = ("pending", "queued", "in_progress", "failed", "blocked", "paused")
    return {"queue": queue, "oldest_queued_ms": None, **dict.fromkeys(counted, 0)}


def _limit(state: LimitState) -> Limit:
    told: dict[str, Any] = document(state.limit) | {
        "used": state.used,
        "frees_in_ms": state.frees_in_ms,
    }
    return Limit.model_construct(**told)


async def _limits_of(server: Server, scope: LimitScope, name: str) -> Limits:
    found = await server.app.store.controls.limits()
    about = [_limit(s) for s in found if s.limit.scope is scope and s.limit.name == name]
    return Limits.model_construct(limits=about)
