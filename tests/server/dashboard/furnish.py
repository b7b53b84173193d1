"""Something on every page, and a picture of all of it, for comparing before with after."""

from typing import Any

from fastapi import FastAPI
from msgspec import Struct
from msgspec.json import encode

from penstock import Penstock
from penstock.model.alert import Alert, AlertState, Turn
from penstock.model.controls import Breaker, Limit, LimitKind, LimitScope, PauseScope
from penstock.model.failure import Failure
from penstock.model.ids import new_id
from penstock.model.job import NewJob
from penstock.model.outcome import Buried
from penstock.model.retry import ErrorClass
from penstock.model.schedule import Schedule, ScheduleKind
from penstock.server.access.identity import Scope
from penstock.server.app import create_server
from penstock.server.dashboard.route import PageRoute
from penstock.store.contract import Beat, Resolution
from proof.conformance.build import OWNER, claim_all

HOSTILE = "<img src=x onerror=alert(1)>\"'&{{7*7}}</pre></textarea><script>alert(1)</script>"
KINDS = ("token", "user", "session", "alert")


class Furnished(Struct, frozen=True):
    """What a furnished installation holds, by the names that pages use."""

    job_id: str
    group: str
    schedule: str
    alert: str
    breaker: str
    token_id: str
    user: str


async def bury(
    app: Penstock,
    count: int = 1,
    *,
    type: str = "mail.send",  # noqa: A002 - the column's name
    message: str = "it broke",
    payload: str = '{"to": "a"}',
    **fields: Any,
) -> list[str]:
    """Jobs that died, oldest first."""
    made = [NewJob(id=new_id(), type=type, payload=payload, **fields) for _ in range(count)]
    await app.store.jobs.enqueue(made)
    failure = Failure(ErrorClass.UNKNOWN, "ValueError", message, f"Traceback: {message}", message)
    while leases := await claim_all(app.store, types=(type,)):
        ended = [
            Buried(
                id=lease.id,
                fence=lease.fence,
                type=lease.type,
                queue=lease.queue,
                started_at=lease.started_at or lease.queued_at,
                failure=failure,
            )
            for lease in leases
        ]
        assert await app.store.jobs.settle(OWNER, ended) == []
    return [job.id for job in made]


def a_beat(owner: str = OWNER, **fields: Any) -> Beat:
    """What a worker says of itself."""
    said: dict[str, Any] = {
        "name": "mailer",
        "node": "host-a",
        "pid": 1,
        "queues": ("mail",),
        "types": ("mail.send",),
        "concurrency": 10,
        "running": 2,
        "completed": 7,
        "failed": 1,
        "cpu_percent": 12.5,
        "memory_mb": 80.25,
        "poll_age_ms": 40,
    }
    return Beat(owner=owner, **said | fields)


def an_alert(name: str, state: AlertState = AlertState.FIRING, **fields: Any) -> Alert:
    """An alert that stands."""
    turns = (Turn(at=1, state=AlertState.PENDING), Turn(at=2, state=state, value=12))
    chosen: dict[str, Any] = {"text": "Too many.", "action": "Look.", "fired_at": 2} | fields
    return Alert(name=name, rule=name, state=state, since_at=1, number=1, history=turns, **chosen)


async def put_alert(app: Penstock, alert: Alert) -> None:
    """Have an alert stand as if a rule had made it."""
    await app.store.records.put("alert", alert.name, encode(alert).decode())


def a_schedule(name: str, **fields: Any) -> Schedule:
    """Every night at three, in Berlin."""
    chosen: dict[str, Any] = {
        "type": "mail.send",
        "kind": ScheduleKind.CRON,
        "expression": "0 3 * * *",
        "zone": "Europe/Berlin",
        "payload": '{"to": "a"}',
        "next_run_at": 4_000_000_000_000,
    }
    return Schedule(id=new_id(), name=name, **chosen | fields)


async def furnish(app: Penstock, server: FastAPI, said: str, tenant: str = "") -> Furnished:
    """Put `said` into every text that a page shows; names only where code checks them."""
    store, state = app.store, server.state.server
    [job_id] = await bury(
        app, message=said, payload=encode({"to": said}).decode(), tenant_id=tenant
    )
    letter = await store.dead.get(job_id)
    assert letter is not None
    await store.dead.resolve([job_id], Resolution.INVESTIGATING, notes=said, by=said)
    await store.schedules.put(
        a_schedule(said, created_by=said, payload=encode({"to": said}).decode(), tenant_id=tenant)
    )
    await store.controls.pause(PauseScope.QUEUE, said, reason=said, by=said)
    await store.controls.pause(PauseScope.TYPE, said, reason=said, by=said)
    for kind in (LimitKind.CONCURRENCY, LimitKind.DEPTH):
        about = Limit(scope=LimitScope.QUEUE, name=said, kind=kind, capacity=3)
        await store.controls.set_limits([about])
    await store.controls.set_limits(
        [Limit(scope=LimitScope.KEY, name=said, kind=LimitKind.RATE, capacity=1, interval_ms=1000)]
    )
    await store.controls.define_breakers([Breaker(name=said, types=(said,))])
    store.workers.beat(a_beat(name=said, node=said, queues=(said,), types=(said,), state="running"))
    await put_alert(
        app,
        an_alert(said, text=said, action=said, note=said, acknowledged_by=said, acknowledged_at=2),
    )
    await state.journal.write(said, said, said, tenant_id=tenant, details={"said": said})
    token, _ = await state.tokens.create(said, (Scope.READ,), by=said, tenant_id=said)
    user = await state.users.create("eve", "a long password", (Scope.READ,), by=said)
    return Furnished(
        job_id=job_id,
        group=letter.group,
        schedule=said,
        alert=said,
        breaker=said,
        token_id=token.id,
        user=user.name,
    )


async def picture(app: Penstock) -> list[Any]:
    """Everything that an action of a page can change."""
    store = app.store
    return [
        [(job.id, job.status, job.payload) for job in await app.find(limit=1000)],
        await store.dead.find(limit=1000),
        await store.schedules.known(),
        await store.controls.pauses(),
        [(state.limit, state.used) for state in await store.controls.limits()],
        await store.controls.breakers(),
        await store.audit.page(0, 1000),
        [await store.records.list(kind) for kind in KINDS],
    ]


def page_routes(method: str) -> set[str]:
    """The paths of all pages that answer to a method."""
    server = create_server(Penstock("sqlite:///:memory:"))
    routes = [route for route in server.routes if isinstance(route, PageRoute)]
    return {route.path for route in routes if method in (route.methods or ())}
