"""A store with some of everything in it, and all that can be read out of one."""

from typing import Any

from msgspec.json import decode

from penstock.model.audit import sealed
from penstock.model.controls import Breaker, Limit, LimitKind, LimitScope, PauseScope
from penstock.model.ids import new_id
from penstock.model.job import KeyScope
from penstock.model.schedule import Schedule, ScheduleKind
from penstock.model.states import TERMINAL
from penstock.store.contract import (
    COLUMNS,
    Bookmark,
    Part,
    Report,
    Resolution,
    Row,
    Snapshot,
    Store,
)
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    OTHER,
    OWNER,
    a_job,
    an_edge,
    buried,
    cancelled,
    claim_all,
    completed,
    enqueue,
    enqueue_after,
    failed,
    handed_back,
    running,
    snoozed,
)

TYPES = ("work", "mail", "slow", "poor", "rated")
NOT_KEPT = {
    Part.LIMITS: ("updated_at",),
    Part.BREAKERS: ("updated_at",),
    Part.DEPENDENCIES: ("created_at",),
}
"""What one store or the other has no use for."""

IN_ORDER = (Part.JOBS, Part.DEAD_LETTERS, Part.CHANGES)
DOCUMENTS = ("snapshot", "executions", "starts", "result", "payload", "options", "metadata")


async def furnish(store: Store, clock: FakeClock) -> None:
    """Fill a store with jobs in every state, and with all that can be beside them."""
    await store.changes.follow("links.ended", TERMINAL)
    await _ended(store, clock)
    await _linked(store, clock)
    await _controlled(store, clock)
    await _waiting(store, clock)
    await _leased(store)
    await _kept(store, clock)


async def _ended(store: Store, clock: FakeClock) -> None:
    for number in range(5):
        lease = await running(store, payload=f'{{"number":{number}}}')
        told = (clock.now(), "info", f'line of {number}: ünïcode \\ " \n')
        logs = [told, (clock.now(), "error", "second")]
        await store.jobs.report(OWNER, [Report(id=lease.id, fence=lease.fence, logs=logs)])
        clock.advance(seconds=1)
        result = "null" if number == 0 else f'{{"got": [{number}, "ä"]}}'
        await store.jobs.settle(OWNER, [completed(lease, result)])
    await store.jobs.settle(OWNER, [cancelled(await running(store))])
    letters = [await _dead(store, tenant_id="acme", tags=("a", "b")) for _ in range(3)]
    await store.dead.resolve(letters[:1], Resolution.INVESTIGATING, notes="look", by="ada")
    await store.dead.mark_canaries(letters[1:2], "abc")
    await store.jobs.requeue(letters[2:])


async def _dead(store: Store, **fields: Any) -> str:
    lease = await running(store, payload='{"amount":1e3}', max_retries=0, **fields)
    await store.jobs.settle(OWNER, [buried(lease)])
    return lease.id


async def _linked(store: Store, clock: FakeClock) -> None:
    parent = await running(store, type="slow")
    await enqueue_after(store, parent.id, an_edge(await enqueue(store, type="mail")))
    done = await running(store, type="slow")
    await enqueue_after(
        store,
        an_edge(parent.id, kind="conditional", condition="result['total'] > 100"),
        an_edge(done.id, kind="data", argument="value", position=1, on_requeue="leave"),
    )
    await store.jobs.settle(OWNER, [completed(done, '{"total": 7}')])
    for _ in range(3):
        await enqueue(store, type="mail", order_key="account", tenant_id="acme")
    clock.advance(seconds=1)


async def _controlled(store: Store, clock: FakeClock) -> None:
    limits = [
        Limit(scope=LimitScope.TYPE, name="slow", kind=LimitKind.CONCURRENCY, capacity=2),
        Limit(scope=LimitScope.QUEUE, name="default", kind=LimitKind.DEPTH, capacity=9_000),
        Limit(
            scope=LimitScope.TYPE,
            name="rated",
            kind=LimitKind.RATE,
            capacity=5,
            interval_ms=60_000,
            by_operator=True,
        ),
    ]
    await store.controls.set_limits(limits)
    breaker = Breaker(name="smtp", types=("poor",), failures=1, cool_down_ms=30_000)
    await store.controls.define_breakers([breaker])
    await store.jobs.settle(OWNER, [completed(await running(store, type="rated"))])
    await store.jobs.settle(OWNER, [failed(await running(store, type="poor"), retry_in_ms=90_000)])
    await store.controls.pause(PauseScope.QUEUE, "night", reason="quiet", by="ada")
    paused = await enqueue(store, delay_ms=5_000)
    await store.controls.pause(PauseScope.JOB, paused)
    for number, enabled in enumerate((True, False)):
        schedule = Schedule(
            id=new_id(),
            name=f"report-{number}",
            type="mail",
            kind=ScheduleKind.INTERVAL,
            interval_ms=60_000,
            payload='{"tick":"{{ tick }}"}',
            options='{"queue":"reports"}',
            enabled=enabled,
            next_run_at=clock.now() + 60_000,
            expires_at=clock.now() + 10**9,
            max_runs=10,
            metadata='{"owner":"ada"}',
        )
        await store.schedules.put(schedule)


async def _waiting(store: Store, clock: FakeClock) -> None:
    for priority in (9, 1, 5, 3):
        await enqueue(store, type="mail", priority=priority, expires_at=clock.now() + 10**8)
        clock.advance(seconds=0.001)
    scopes = {"w": KeyScope.WHILE_PENDING, "d": KeyScope.UNTIL_DONE, "f": KeyScope.FOREVER}
    for key, scope in scopes.items():
        await enqueue(store, type="mail", key=key, key_scope=scope, tenant_id="acme")
    window = {"key": "n", "key_scope": KeyScope.WINDOW, "key_window_ms": 10**7}
    await enqueue(store, type="mail", delay_ms=60_000, **window)
    await enqueue(
        store,
        type="mail",
        queue="other",
        category="letters",
        limit_key="printer",
        metadata='{"a":[1,null]}',
        trace_context="00-abc-def-01",
        created_by="ada",
        workspace_id="w-1",
        retry_delay_ms=250,
        backoff_multiplier=1.5,
        timeout_ms=7_000,
        keep_completed=60_000,
        keep_failed=-3,
        payload='{"text":"snow ☃ and \\u0041"}',
    )
    parent = await enqueue(store, type="mail")
    await store.jobs.enqueue([a_job(type="mail", parent_job_id=parent, schedule_id=new_id())])
    for ending in (snoozed, failed):
        await store.jobs.settle(OWNER, [ending(await running(store, max_retries=3))])


async def _leased(store: Store) -> None:
    lease = await running(store)
    report = Report(
        id=lease.id,
        fence=lease.fence,
        progress_percent=12.5,
        progress_message="on",
        progress='{"phase":"on"}',
        checkpoint="c",
    )
    await store.jobs.report(OWNER, [report])
    stopped = await running(store)
    await store.jobs.cancel([stopped.id], "no longer wanted")
    await store.jobs.settle(OWNER, [handed_back(await running(store), started=False)])
    for _ in range(2):
        await enqueue(store, queue="ahead")
    await claim_all(store, owner=OTHER, queues=("ahead",), start=1, lease_ms=30_000)


async def _kept(store: Store, clock: FakeClock) -> None:
    await store.records.put("user", "ada ☃", '{"scopes": ["read"], "n":1.10}')
    await store.records.put("user", "ada ☃", '{"scopes": []}')
    await store.records.put("session", "s", "1", expires_in_ms=10**9)
    entry = None
    for subject in ("job:1", "queue:ä"):
        entry = sealed(
            entry,
            at=clock.now(),
            actor="ada",
            action="job.cancel",
            subject=subject,
            tenant_id="acme",
            details='{"b" : 1, "a":"ü"}',
        )
        assert await store.audit.append([entry])


async def copy(source: Store, target: Store, limit: int = 7) -> None:
    """Read everything out of one store and write it into another, in small pages."""
    await source.metrics.roll_up()
    await target.transfer.mark({"move": "copy"})
    for part in Part:
        before, after = None, ""
        while after != "done":
            page = await source.transfer.page(part, before, limit)
            after = page.after or "done"
            assert await target.transfer.adopt(part, page.rows, Bookmark("copy", before, after))
            before = page.after
    await target.transfer.mark(dict.fromkeys(await target.transfer.marks()))


async def everything(store: Store, limit: int = 7) -> dict[Part, list[Row]]:
    """All records of a store, as all stores would have them."""
    return await read_out(store.transfer, limit)


async def read_out(source: Snapshot, limit: int = 7) -> dict[Part, list[Row]]:
    """The same of one moment of a store."""
    found: dict[Part, list[Row]] = {}
    for part in Part:
        rows: list[Row] = []
        after = None
        while True:
            page = await source.page(part, after, limit)
            rows += page.rows
            after = page.after
            if after is None:
                break
        alike = [_alike(part, row) for row in rows]
        found[part] = alike if part in IN_ORDER else sorted(alike, key=repr)
    return found


def _alike(part: Part, row: Row) -> Row:
    names = COLUMNS[part]
    fields = dict(zip(names, row, strict=True))
    for name in NOT_KEPT.get(part, ()):
        del fields[name]
    for name in DOCUMENTS:
        if isinstance(fields.get(name), str):
            fields[name] = decode(fields[name])
    if part is Part.JOBS and fields["status"] != "queued":
        del fields["rank"]  # written anew whenever a job is queued
    for name, value in fields.items():
        fields[name] = str(value) if isinstance(value, str) else value
    return tuple(fields.items())
