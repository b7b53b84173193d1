"""Limits, pauses and breakers on Redis, where the conformance suite does not reach."""

import asyncio
import os
import sys
from itertools import accumulate
from pathlib import Path

import pytest
from msgspec.structs import replace

from penstock.model.controls import EVERY, Breaker, Limit, LimitKind, LimitScope, PauseScope
from penstock.model.states import Status
from penstock.store.contract import JobFilter, Retention
from penstock.store.redis.store import RedisStore
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    OTHER,
    OWNER,
    a_claim,
    a_job,
    buried,
    claim_all,
    completed,
    running,
)
from proof.conformance.fleet import at_once
from proof.conformance.rates import per
from tests.support.limited_worker import CONCURRENCY
from tests.support.redis_raw import RawKeys

ROOT = Path(__file__).parents[3]
ODD_NAMES = ["a/b", 'x"y\\z', "é 😀", "line\nbreak", "\x7f\x01", "[1]", "%s%d", "*a", "{}"]


async def run_keys(store: RedisStore, rounds: int) -> None:
    """One long job keeps the worker busy while it runs others, each under a key of its own."""
    await running(store, limit_key="long")
    for number in range(rounds):
        lease = await running(store, limit_key=f"key-{number}")
        await store.jobs.settle(OWNER, [completed(lease)])
    await claim_all(store)


async def test_a_busy_worker_leaves_no_slots_behind(store: RedisStore, raw: RawKeys) -> None:
    await store.controls.set_limits([at_once(1, LimitScope.KEY, EVERY)])
    await run_keys(store, 20)
    assert raw.ask("HLEN", "slots") == 1


async def test_slots_of_workers_that_are_gone_are_pruned(store: RedisStore, raw: RawKeys) -> None:
    await store.controls.set_limits([at_once(1, LimitScope.KEY, EVERY)])
    await running(store, limit_key="a")
    await store.jobs.enqueue([a_job(limit_key="b")])
    await claim_all(store, owner=OTHER)
    await store.upkeep.rescue(owner=OTHER)
    await store.upkeep.prune(Retention())
    assert raw.ask("HKEYS", "slots") == [f"key\n{OWNER}\na".encode()]


async def test_old_starts_are_pruned_and_recent_ones_kept(
    store: RedisStore, raw: RawKeys, clock: FakeClock
) -> None:
    await store.controls.set_limits([per(1, 60_000, LimitScope.KEY, EVERY)])
    await run_keys(store, 5)
    clock.advance(seconds=59)
    await store.upkeep.prune(Retention())
    assert raw.ask("HLEN", "rates") == 6
    clock.advance(seconds=1)
    await store.upkeep.prune(Retention())
    assert raw.ask("HLEN", "rates") == 0


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_a_limit_holds_whatever_its_name_is(store: RedisStore, name: str) -> None:
    fields = ("type", "queue", "tenant_id", "limit_key")
    scopes = (LimitScope.TYPE, LimitScope.QUEUE, LimitScope.TENANT, LimitScope.KEY)
    for place, (field, scope) in enumerate(zip(fields, scopes, strict=True), 1):
        job = {"type": f"type-{place}"} | {field: name}
        await store.controls.set_limits([at_once(2, scope, name)])
        await store.jobs.enqueue([a_job(**job) for _ in range(4)])
        claimed = await store.jobs.claim(a_claim(types=(job["type"],)))
        assert (len(claimed.leases), claimed.slots) == (2, {(scope, name): 2})
        [state] = await store.controls.limits()
        assert (state.limit.name, state.used, len(state.holders)) == (name, 2, 2)
        await store.jobs.settle(OWNER, [completed(lease) for lease in claimed.leases])
        assert await store.controls.remove_limit(scope, name, LimitKind.CONCURRENCY)


@pytest.mark.parametrize("name", ODD_NAMES)
async def test_pauses_and_breakers_hold_whatever_their_names_are(
    store: RedisStore, name: str
) -> None:
    breaker = Breaker(name=name, types=(name,), failures=1, cool_down_ms=60_000)
    await store.controls.define_breakers([breaker], known_types=[name])
    lease = await running(store, type=name)
    await store.jobs.settle(OWNER, [buried(lease)])
    [state] = await store.controls.breakers()
    assert (state.breaker, state.failed) == (breaker, 1)
    await store.jobs.enqueue([a_job(type=name, tenant_id=name)])
    assert await claim_all(store, types=(name,)) == []
    assert await store.controls.reset_breaker(name)
    paused = await store.controls.pause(PauseScope.TENANT, name, reason=name, by=name)
    assert await store.controls.pauses() == [paused]
    assert await claim_all(store, types=(name,)) == []
    assert await store.controls.resume(PauseScope.TENANT, name)
    assert len(await claim_all(store, types=(name,))) == 1


async def test_a_limit_on_depth_is_told_and_asks_nothing_of_a_claim(
    store: RedisStore, raw: RawKeys
) -> None:
    depth = Limit(scope=LimitScope.QUEUE, name="default", kind=LimitKind.DEPTH, capacity=2)
    await store.controls.set_limits([depth, replace(depth, name=EVERY)])
    await store.jobs.enqueue([a_job() for _ in range(5)])
    each, one = await store.controls.limits()
    assert ((each.limit.name, each.used), (one.limit.name, one.used)) == (("*", 0), ("default", 3))
    assert raw.ask("EXISTS", "limits") == 0
    assert len(await claim_all(store)) == 5
    assert await store.controls.remove_limit(LimitScope.QUEUE, "default", LimitKind.DEPTH)


async def test_a_breaker_without_types_is_kept_as_long_as_it_is_named(store: RedisStore) -> None:
    idle = Breaker(name="idle", types=())
    await store.controls.define_breakers([idle], known_types=["work"])
    assert [state.breaker for state in await store.controls.breakers()] == [idle]
    assert len([await running(store)]) == 1
    await store.controls.define_breakers([], known_types=["work"])
    assert await store.controls.breakers() == []


@pytest.mark.thorough
async def test_two_processes_never_run_more_than_a_limit_allows(
    valkey_url: str, tmp_path: Path
) -> None:
    store = RedisStore(valkey_url)
    await store.open()
    await store.controls.set_limits([at_once(3, LimitScope.TYPE, "work")])
    await store.jobs.enqueue([a_job() for _ in range(300)])
    journal = tmp_path / "journal"
    journal.touch()
    path = os.pathsep.join((str(ROOT), str(ROOT / "src")))
    workers = [
        await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "tests.support.limited_worker"),
            *(valkey_url, str(journal), f"host:{name}"),
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": path},
        )
        for name in ("one", "two")
    ]
    assert [await worker.wait() for worker in workers] == [0, 0]
    at_a_time = list(accumulate(1 if mark == "+" else -1 for mark in journal.read_text()))
    assert 1 < max(at_a_time) <= 3 < CONCURRENCY
    assert at_a_time[-1] == 0
    found = await store.reader.find(JobFilter(statuses=(Status.COMPLETED,), limit=400))
    assert len(found) == 300
    await store.close()
