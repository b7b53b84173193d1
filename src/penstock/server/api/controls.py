"""What holds work back, for the whole installation: queues, pauses, limits, breakers."""

from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import ConfigDict, Field

from penstock.model.controls import BreakerPosition, LimitKind, LimitScope, LimitState, PauseScope
from penstock.model.job import MAX_REASON
from penstock.operate.controls import about
from penstock.operate.documents import document
from penstock.server.api.models import Document, Moment, Name, Text
from penstock.server.api.router import api_router
from penstock.server.guard import MayOperateAll, MayRead, MayReadAll
from penstock.server.state import Here, Server

router = api_router("/api", "queues")

Pausable = Literal[PauseScope.QUEUE, PauseScope.TYPE, PauseScope.TENANT]


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

    scope: Pausable
    name: Text
    reason: str | None = Field(None, max_length=MAX_REASON)


class Pauses(Document):
    """Return everything that is paused, the oldest first."""

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
    name: Text
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
    workers: int = Field(description="How many live workers take jobs from it.")


class Queues(Document):
    """Every queue with jobs, every one that is paused or limited, and those of live workers."""

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
async def list_queues(server: Here, caller: MayRead, tenant: Text | None = None) -> Queues:
    """How much stands in every queue; of a tenant's jobs, without what bounds the queue."""
    found = [
        Queue.model_construct(
            **document(state.depth),
            pause=state.pause and Pause.model_construct(**document(state.pause)),
            limits=[_limit(limit) for limit in state.limits],
            workers=state.workers,
        )
        for state in await server.operator(caller).controls.queues(tenant)
    ]
    return Queues.model_construct(queues=found)


@router.get("/pauses", operation_id="list_pauses")
async def list_pauses(server: Here, _: MayReadAll) -> Pauses:
    """Everything that is paused: queues, types, tenants and single jobs."""
    found = await server.app.store.controls.pauses()
    return Pauses.model_construct(pauses=[Pause.model_construct(**document(p)) for p in found])


@router.post("/pauses", operation_id="pause", status_code=201)
async def pause(server: Here, caller: MayOperateAll, new: NewPause) -> Pause:
    """Hold a queue, a type or a tenant back."""
    found = await server.operator(caller).controls.pause(
        reason=new.reason, **about(new.scope, new.name)
    )
    return Pause.model_construct(**document(found))


@router.delete("/pauses", operation_id="resume")
async def resume(
    server: Here, caller: MayOperateAll, scope: Pausable, name: Annotated[Text, Query()]
) -> Resumed:
    """Let it go on."""
    return Resumed(resumed=await server.operator(caller).controls.resume(**about(scope, name)))


@router.get("/limits", operation_id="list_limits", tags=["limits"])
async def list_limits(server: Here, _: MayReadAll) -> Limits:
    """Return all limits, and how much of each is taken."""
    found = await server.app.store.controls.limits()
    return Limits.model_construct(limits=[_limit(state) for state in found])


@router.put("/limits", operation_id="set_limits", tags=["limits"])
async def set_limits(server: Here, caller: MayOperateAll, new: NewLimit) -> Limits:
    """Set limits that outlive a deploy; a kind that is left out stays as it is."""
    await server.operator(caller).controls.set_limit(
        concurrency=new.concurrency,
        rate=new.rate,
        depth=new.depth,
        **about(new.scope, new.name),
    )
    return await _limits_of(server, new.scope, new.name)


@router.delete("/limits", operation_id="remove_limits", tags=["limits"])
async def remove_limits(
    server: Here,
    caller: MayOperateAll,
    scope: LimitScope,
    name: Annotated[Text, Query()],
    kind: LimitKind | None = None,
) -> Limits:
    """Take limits away, all kinds or one; what is left is answered."""
    await server.operator(caller).controls.remove_limit(kind=kind, **about(scope, name))
    return await _limits_of(server, scope, name)


@router.get("/breakers", operation_id="list_breakers", tags=["breakers"])
async def list_breakers(server: Here, _: MayReadAll) -> Breakers:
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
async def reset_breaker(server: Here, caller: MayOperateAll, name: Name) -> BreakerReset:
    """Close a breaker by hand and forget its failures."""
    await server.operator(caller).controls.reset_breaker(name)
    return BreakerReset(name=name)


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
