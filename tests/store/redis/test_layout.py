"""The indexes of a Redis store tell the same as its jobs, whatever was done to it."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test
from msgspec.structs import replace

from penstock.model.clock import Clock
from penstock.model.failure import Failure
from penstock.model.retry import ErrorClass
from penstock.model.states import Status
from penstock.store.contract import Resolution, Retention, Store
from penstock.store.redis.store import RedisStore
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    OWNER,
    a_job,
    buried,
    cancelled,
    claim_all,
    completed,
    crashed,
    dead_job,
    enqueue_after,
    failed,
    handed_back,
    snoozed,
)
from proof.state_machine import FlowMachine, GateMachine, Ground, StoreMachine, on
from tests.support.namespaces import in_new_namespace
from tests.support.places import LONG
from tests.support.redis_audit import audit
from tests.support.redis_raw import RawKeys


class AuditedStore(RedisStore):
    """Counted anew before it is closed."""

    async def close(self) -> None:
        try:
            _audit(self)
        finally:
            await super().close()


@pytest.fixture
async def store(valkey_url: str, clock: FakeClock) -> AsyncIterator[AuditedStore]:
    store = AuditedStore(valkey_url, clock)
    await store.open()
    yield store
    await store.close()


def _audit(store: RedisStore) -> None:
    raw = RawKeys(store.url)
    try:
        audit(raw.client, raw.prefix)
    finally:
        raw.close()


@pytest.mark.parametrize("machine", [StoreMachine, FlowMachine, GateMachine])
@pytest.mark.thorough
def test_whatever_is_done_every_count_and_index_is_right(
    machine: type[Ground[Any]], valkey_server_url: str
) -> None:
    def fresh(clock: Clock) -> Store:
        return AuditedStore(in_new_namespace(valkey_server_url), clock)

    run_state_machine_as_test(
        on(fresh, machine),
        settings=settings(
            max_examples=100 if LONG else 3,
            stateful_step_count=40,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


async def test_nothing_is_left_of_jobs_that_were_pruned(
    store: AuditedStore, clock: FakeClock, raw: RawKeys
) -> None:
    endings = [completed, failed, snoozed, cancelled, buried, crashed, handed_back]
    jobs = [a_job(key=f"k{place}", expires_in_ms=10_000) for place, _ in enumerate(endings)]
    await store.jobs.enqueue([*jobs, a_job(delay_ms=5_000, order_key="line", tags=("a",))])
    leases = await claim_all(store)
    await enqueue_after(store, leases[0].id, parent_job_id=leases[1].id)
    settled = [ending(lease) for ending, lease in zip(endings, leases, strict=True)]
    assert await store.jobs.settle(OWNER, settled) == []
    _audit(store)
    clock.advance(seconds=20)
    while leases := await claim_all(store):
        await store.jobs.settle(OWNER, [completed(lease) for lease in leases])
    await store.upkeep.expire()
    clock.advance(seconds=1)
    everything = Retention(keep_ms=dict.fromkeys(Status, 0))
    while (await store.upkeep.prune(everything)).more:
        pass
    _audit(store)
    names = raw.names()
    figures = {name for name in names if name.startswith("metrics:")}
    assert names - figures <= {"meta", "seq", "dead:seq", "owners"}


async def test_letters_are_listed_right_whatever_becomes_of_them(store: AuditedStore) -> None:
    ids = [await dead_job(store, type=f"t{n % 2}", tenant_id=f"c{n % 3}") for n in range(7)]
    await store.dead.mark_canaries(ids[:3], "3fa9c2d1")
    for resolution in (Resolution.IGNORED, Resolution.INVESTIGATING, Resolution.RESOLVED):
        await store.dead.resolve(ids[1:4], resolution, notes=None, by=None)
        _audit(store)
    await store.jobs.requeue(ids[2:6])
    _audit(store)
    again = await claim_all(store, types=("t0", "t1"))
    other = Failure(ErrorClass.TIMEOUT, "TimeoutError", "too late", "", "timeout|a.py:send")
    died = [replace(buried(lease), failure=other) for lease in again[:3]]
    await store.jobs.settle(OWNER, [*died, completed(again[3])])
    _audit(store)
    assert {group.count for group in await store.dead.groups()} == {1, 2}
    await store.dead.mark_canaries(ids[1:3], None)
    await store.dead.purge(ids[:4])
    _audit(store)


DAMAGE = [
    (("HINCRBY", "depths", "queued default", 1), ("HINCRBY", "depths", "queued default", -1)),
    (("ZADD", "due", 1, "nobody"), ("ZREM", "due", "nobody")),
    (("ZADD", "groups:*", 1, "t\nf"), ("ZREM", "groups:*", "t\nf")),
    (("SADD", f"stops:{OWNER}", "nobody"), ("SREM", f"stops:{OWNER}", "nobody")),
    (("ZADD", "ended:completed", 1, "nobody"), ("ZREM", "ended:completed", "nobody")),
    (("HSET", "job:nobody", "status", "completed"), ("DEL", "job:nobody")),
]


@pytest.mark.parametrize(("damage", "repair"), DAMAGE)
async def test_an_index_that_tells_something_else_is_found(
    store: AuditedStore, raw: RawKeys, damage: tuple[Any, ...], repair: tuple[Any, ...]
) -> None:
    await store.jobs.enqueue([a_job() for _ in range(3)])
    await claim_all(store, limit=1)
    raw.ask(*damage)
    with pytest.raises(AssertionError):
        _audit(store)
    raw.ask(*repair)
    _audit(store)
