"""What is moved into Redis stands where its own jobs would."""

from collections.abc import AsyncIterator

import pytest
import redis

from penstock.store.contract import Store
from penstock.store.open import open_store
from penstock.store.redis.connect import address_of
from penstock.testing.clock import FakeClock
from proof.conformance.build import claim_all, completed
from proof.conformance.furnish import TYPES, copy, furnish
from tests.support.redis_audit import audit


@pytest.fixture
async def stores(valkey_url: str, clock: FakeClock) -> AsyncIterator[tuple[Store, Store]]:
    """One in memory with some of everything in it, and an empty one on Redis."""
    full, empty = open_store("sqlite:///:memory:", clock), open_store(valkey_url, clock)
    await full.open()
    await empty.open()
    await furnish(full, clock)
    yield full, empty
    await full.close()
    await empty.close()


async def test_every_index_agrees_with_the_jobs_that_were_moved_in(
    stores: tuple[Store, Store], valkey_url: str, clock: FakeClock
) -> None:
    address = address_of(valkey_url)
    await copy(*stores)
    with redis.Redis(host=address.host, port=address.port, db=address.db) as client:
        audit(client, address.prefix)
        clock.advance(seconds=3_600)
        await stores[1].upkeep.rescue()
        for lease in await claim_all(stores[1], types=TYPES, limit=500, owner="late:1:x"):
            await stores[1].jobs.settle("late:1:x", [completed(lease)])
        audit(client, address.prefix)


async def test_nothing_is_left_of_a_store_that_was_cleared(
    stores: tuple[Store, Store], valkey_url: str
) -> None:
    address = address_of(valkey_url)
    await copy(*stores)
    await stores[1].transfer.clear()
    with redis.Redis(host=address.host, port=address.port, db=address.db) as client:
        left = sorted(client.scan_iter(f"{address.prefix}*", count=1000))
    assert left == [f"{address.prefix}meta".encode()]
