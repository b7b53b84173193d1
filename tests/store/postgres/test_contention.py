"""Several processes at one store: none waits for ever, nothing is done twice, nothing is missed.

Each store here has connections of its own, as if it were a process; what is gathered overlaps.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from penstock.model.clock import ServerClock
from penstock.model.controls import Limit, LimitKind, LimitScope
from penstock.model.job import Lease
from penstock.model.outcome import Settlement
from penstock.model.states import Status
from penstock.store.contract import Store
from penstock.store.open import open_store
from penstock.store.postgres.connect import address_of
from penstock.store.postgres.enqueue import enqueue_all
from penstock.store.postgres.session import Session
from penstock.store.postgres.transaction import PostgresTransaction
from penstock.store.relational.claim import MIN_CHUNK
from proof import LONG
from proof.conformance.build import (
    OTHER,
    OWNER,
    a_claim,
    a_job,
    an_edge,
    buried,
    claim_all,
    completed,
    enqueue,
    enqueue_after,
    failed,
    job_of,
    status_of,
)

TRIES = 200 if LONG else 40
WITH_DEADLOCKS = 15
"""Seconds that so many deadlocks would take: the server looks for one after a second."""
OWNERS = tuple(f"host-{letter}:1:x" for letter in "abcd")


@pytest.fixture
async def stores(postgres_store_url: str) -> AsyncIterator[list[Store]]:
    opened = [open_store(postgres_store_url) for _ in OWNERS]
    for store in opened:
        await store.open()
    yield opened
    for store in opened:
        await store.close()


async def claimed(store: Store, *, owner: str = OWNER, type_: str = "work") -> list[Lease]:
    """Claim until there is something: a claim may see late what has just changed."""
    async with asyncio.timeout(WITH_DEADLOCKS):
        while not (leases := await claim_all(store, owner=owner, types=(type_,))):
            pass
    return leases


async def started(store: Store, **fields: Any) -> Lease:
    """Enqueue one job of a type that has no other waiting, and claim it."""
    job_id = await enqueue(store, **fields)
    [lease] = await claimed(store, type_=fields.get("type", "work"))
    assert lease.id == job_id
    return lease


async def test_of_two_enqueues_with_one_key_one_makes_a_job_and_both_name_it(
    stores: list[Store],
) -> None:
    one, two, *_ = stores
    for n in range(TRIES):
        [[first], [second]] = await asyncio.gather(
            one.jobs.enqueue([a_job(key=f"k{n}")]), two.jobs.enqueue([a_job(key=f"k{n}")])
        )
        assert first.id == second.id
        assert first.created is not second.created


async def test_two_batches_with_the_same_keys_in_opposite_orders_do_not_lock_each_other_out(
    stores: list[Store],
) -> None:
    one, two, *_ = stores
    async with asyncio.timeout(WITH_DEADLOCKS):
        for n in range(20):
            keys = [f"k{n}-{place}" for place in range(20)]
            forth, back = await asyncio.gather(
                one.jobs.enqueue([a_job(key=key) for key in keys]),
                two.jobs.enqueue([a_job(key=key) for key in reversed(keys)]),
            )
            assert [answer.id for answer in forth] == [answer.id for answer in reversed(back)]
            assert sum(answer.created for answer in (*forth, *back)) == len(keys)


@pytest.mark.parametrize("kind", ["key", "order_key"])
@pytest.mark.thorough
async def test_single_enqueues_that_share_commits_do_not_lock_each_other_out(
    stores: list[Store], kind: str
) -> None:
    one, two, *_ = stores
    async with asyncio.timeout(WITH_DEADLOCKS):
        for n in range(10):
            names = [f"{n}-{place}" for place in range(20)]
            ids = await asyncio.gather(
                *(enqueue(one, **{kind: name}) for name in names),
                *(enqueue(two, **{kind: name}) for name in reversed(names)),
            )
            forth, back = ids[: len(names)], ids[len(names) :]
            assert len(set(forth)) == len(set(back)) == len(names)
            assert (forth == back[::-1]) is (kind == "key")  # one job for each key


@pytest.mark.thorough
async def test_an_edge_added_while_its_parent_settles_is_closed(stores: list[Store]) -> None:
    one, two, *_ = stores
    for _ in range(TRIES):
        parent = await started(one, type="parent")
        [stale, child] = await asyncio.gather(
            one.jobs.settle(OWNER, [completed(parent)]),
            enqueue_after(two, parent.id, type="child"),
        )
        assert stale == []
        assert (await job_of(one, child)).waiting_on == 0
    assert await one.upkeep.release() == 0


async def test_an_edge_added_while_its_parent_is_cancelled_ends_its_child(
    stores: list[Store],
) -> None:
    one, two, *_ = stores
    for _ in range(TRIES // 4):
        parent = await enqueue(one, type="parent")
        [_, child] = await asyncio.gather(
            one.jobs.cancel([parent], "no"), enqueue_after(two, parent, type="child")
        )
        assert await status_of(one, child) is Status.CANCELLED


async def test_two_settles_that_close_the_edges_of_one_child_release_it_with_both_results(
    stores: list[Store],
) -> None:
    one, two, *_ = stores
    for _ in range(TRIES // 2):
        parents = [await started(one, type="parent") for _ in range(2)]
        edges = [
            an_edge(parent.id, kind="data", argument=f"from_{place}")
            for place, parent in enumerate(parents)
        ]
        child = await enqueue_after(one, *edges, type="child")
        answers = await asyncio.gather(
            one.jobs.settle(OWNER, [completed(parents[0], "1")]),
            two.jobs.settle(OWNER, [completed(parents[1], "2")]),
        )
        assert answers == [[], []]
        freed = await job_of(one, child)
        assert freed.waiting_on == 0
        assert '"from_0":1' in freed.payload
        assert '"from_1":2' in freed.payload


async def test_claims_at_the_same_time_never_exceed_a_limit(stores: list[Store]) -> None:
    limit = Limit(scope=LimitScope.TYPE, name="work", kind=LimitKind.CONCURRENCY, capacity=3)
    await stores[0].controls.set_limits([limit])
    await stores[0].jobs.enqueue([a_job() for _ in range(200)])
    for _ in range(20):
        granted = await asyncio.gather(
            *(
                store.jobs.claim(a_claim(owner=owner, limit=4))
                for store, owner in zip(stores, OWNERS, strict=True)
            )
        )
        assert sum(len(claimed.leases) for claimed in granted) == 3
        for store, owner, claimed in zip(stores, OWNERS, granted, strict=True):
            assert await store.jobs.settle(owner, [completed(x) for x in claimed.leases]) == []


async def test_claims_at_the_same_time_never_lease_a_job_twice_and_leave_none(
    stores: list[Store],
) -> None:
    ids = [answer.id for answer in await stores[0].jobs.enqueue([a_job() for _ in range(400)])]
    leased: list[Lease] = []
    async with asyncio.timeout(WITH_DEADLOCKS):
        while len(leased) < len(ids):
            granted = await asyncio.gather(
                *(
                    claim_all(store, owner=owner, limit=10)
                    for store, owner in zip(stores, OWNERS, strict=True)
                )
            )
            leased += [lease for leases in granted for lease in leases]
    assert sorted(lease.id for lease in leased) == sorted(ids)


async def test_of_a_cancel_and_a_failure_at_the_same_time_the_cancel_is_never_lost(
    stores: list[Store],
) -> None:
    one, two, *_ = stores
    for _ in range(TRIES):
        lease = await started(one)
        await asyncio.gather(
            one.jobs.settle(OWNER, [failed(lease)]), two.jobs.cancel([lease.id], "no")
        )
        assert await status_of(one, lease.id) is Status.CANCELLED


async def test_an_enqueue_repeated_while_its_job_ends_makes_no_second_one(
    stores: list[Store],
) -> None:
    one, two, *_ = stores
    for _ in range(TRIES):
        job = a_job()
        await one.jobs.enqueue([job])
        [lease] = await claimed(one)
        [_, [again]] = await asyncio.gather(
            one.jobs.settle(OWNER, [completed(lease)]), two.jobs.enqueue([job])
        )
        assert not again.created
    assert await one.reader.waiting() == []


async def test_jobs_of_one_line_enqueued_by_several_run_one_at_a_time(stores: list[Store]) -> None:
    await asyncio.gather(
        *(
            store.jobs.enqueue([a_job(order_key="line") for _ in range(size)])
            for size in (1, 2, 1, 3, 1, 2)
            for store in stores
        )
    )
    done = 0
    async with asyncio.timeout(WITH_DEADLOCKS):
        while done < 40:
            granted = await asyncio.gather(*(claim_all(store, limit=5) for store in stores))
            leases = [lease for some in granted for lease in some]
            assert len(leases) <= 1
            done += len(leases)
            assert await stores[1].jobs.settle(OWNER, [completed(x) for x in leases]) == []
    assert await stores[0].reader.waiting() == []
    assert await stores[0].upkeep.release() == 0


async def test_a_job_that_joins_a_line_while_the_last_one_leaves_waits_for_nobody(
    stores: list[Store],
) -> None:
    one, two, *_ = stores
    for _ in range(TRIES):
        last = await started(one, order_key="line")
        [_, joined] = await asyncio.gather(
            one.jobs.settle(OWNER, [completed(last)]), enqueue(two, order_key="line")
        )
        [lease] = await claimed(one)
        assert lease.id == joined
        assert await one.jobs.settle(OWNER, [completed(lease)]) == []


@pytest.mark.thorough
async def test_cascades_that_meet_from_all_sides_end_every_job_once(stores: list[Store]) -> None:
    one, two, three, four = stores
    for _ in range(10):
        parents = [await started(one, type="parent") for _ in range(6)]
        children = [
            await enqueue_after(
                one,
                *(an_edge(p.id, on_failure="cancel") for p in parents[place % 3 :: 2]),
                type="child",
                order_key=f"line-{place % 2}",
            )
            for place in range(8)
        ]
        grandchildren = [
            await enqueue_after(one, children[-1 - place], children[place], type="child")
            for place in range(4)
        ]
        forth: list[Settlement] = [buried(parent) for parent in parents[:3]]
        back: list[Settlement] = [completed(parent) for parent in parents[:2:-1]]
        await asyncio.gather(
            one.jobs.settle(OWNER, forth),
            two.jobs.settle(OWNER, back),
            three.jobs.cancel(list(reversed(children)), "no"),
            four.jobs.cancel(grandchildren, "no"),
        )
        for job in await one.reader.get([*children, *grandchildren]):
            assert job.status is Status.CANCELLED
            assert job.waiting_on == 0
    assert await one.upkeep.release() == 0


async def test_a_rescue_and_a_settle_at_the_same_time_end_a_lease_once(
    stores: list[Store],
) -> None:
    one, two, *_ = stores
    for _ in range(TRIES // 4):
        leases = [await started(one, type="one") for _ in range(3)]
        [stale, rescued] = await asyncio.gather(
            one.jobs.settle(OWNER, [completed(lease) for lease in leases]),
            two.upkeep.rescue(owner=OWNER),
        )
        assert {lost.id for lost in rescued} == set(stale)
        left = len(stale)
        while left:
            again = await claimed(one, owner=OTHER, type_="one")
            assert await one.jobs.settle(OTHER, [completed(lease) for lease in again]) == []
            left -= len(again)


async def test_a_claim_grants_no_lease_twice_when_urgent_jobs_come_while_it_looks(
    stores: list[Store], postgres_store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two lanes one is read in several chunks, and between them somebody commits."""
    store, *_ = stores
    limit = Limit(scope=LimitScope.TYPE, name="work", kind=LimitKind.CONCURRENCY, capacity=1_000)
    await store.controls.set_limits([limit])
    await store.jobs.enqueue([a_job() for _ in range(3 * MIN_CHUNK)])
    await store.jobs.enqueue([a_job(queue="other")])
    producer = Session(address_of(postgres_store_url), ServerClock())
    look = PostgresTransaction.row

    def looked(tx: PostgresTransaction, name: str, bindings: Any = ()) -> tuple[Any, ...] | None:
        found = look(tx, name, bindings)
        if name == "lane":
            producer.perform(lambda own: enqueue_all(own, [a_job(priority=1)]))
        return found

    monkeypatch.setattr(PostgresTransaction, "row", looked)
    leases = (await store.jobs.claim(a_claim(limit=2 * MIN_CHUNK))).leases
    producer.close()
    assert len(leases) == 2 * MIN_CHUNK
    assert len({lease.id for lease in leases}) == len(leases)
