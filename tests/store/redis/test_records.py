"""Records on Redis: what has expired goes with the next pass, and a full memory stops no login."""

import pytest

from penstock.model.states import TERMINAL
from penstock.model.store_errors import StoreFull
from penstock.operate.journal import Journal
from penstock.store.contract import Retention, Store
from penstock.testing.clock import FakeClock
from proof.conformance.build import enqueue
from tests.support.redis_raw import RawKeys


async def test_expired_records_leave_nothing_behind(
    store: Store, clock: FakeClock, raw: RawKeys
) -> None:
    for number in range(30):
        await store.records.put("session", f"s{number}", "{}", expires_in_ms=1_000)
    await store.records.put("session", "s0", "{}", expires_in_ms=9_000)
    await store.records.put("session", "s1", "{}")
    clock.advance(seconds=2)
    await store.upkeep.prune(Retention(keep_ms=dict.fromkeys(TERMINAL, 0)))
    assert sorted(raw.ask("HKEYS", "records")) == [b"session\ns0", b"session\ns1"]
    assert raw.ask("ZRANGE", "records:names", 0, -1) == [b"session\ns0", b"session\ns1"]
    assert raw.ask("ZRANGE", "records:expiring", 0, -1) == [b"session\ns0"]


@pytest.mark.thorough
async def test_a_page_goes_on_behind_many_that_have_expired(store: Store, clock: FakeClock) -> None:
    for number in range(1_100):
        await store.records.put("session", f"{number:05}", "{}", expires_in_ms=1_000)
    await store.records.put("session", "last", "{}")
    clock.advance(seconds=2)
    assert [record.name for record in await store.records.list("session", limit=2)] == ["last"]


async def test_a_full_memory_stops_neither_a_record_nor_an_entry(
    store: Store, raw: RawKeys
) -> None:
    raw.client.config_set("maxmemory", "100kb")
    try:
        with pytest.raises(StoreFull):
            await enqueue(store)
        assert await store.records.put("session", "s", "{}") is not None
        await Journal(store).write("ada", "job.cancel", "id")
    finally:
        raw.client.config_set("maxmemory", "0")
