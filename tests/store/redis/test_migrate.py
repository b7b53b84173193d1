"""An older layout of the keys is brought up to date."""

from penstock.store.contract import Resolution
from penstock.store.redis.migrate import LAYOUT
from penstock.store.redis.store import RedisStore
from proof.conformance.build import dead_job
from tests.support.redis_audit import audit
from tests.support.redis_raw import RawKeys


async def test_letters_of_the_first_layout_are_found_in_their_order_and_groups(
    store: RedisStore, raw: RawKeys
) -> None:
    ids = [await dead_job(store, type=f"t{n % 2}") for n in range(4)]
    await store.dead.resolve(ids[1:2], Resolution.INVESTIGATING, notes=None, by=None)
    await store.dead.resolve(ids[2:3], Resolution.RESOLVED, notes=None, by=None)
    await store.dead.mark_canaries(ids[:1], "3fa9c2d1")
    known = await store.dead.groups(), await store.dead.groups(only_open=True)
    for key in raw.names():
        if key.startswith(("letters:", "group", "canaries:")):
            raw.ask("DEL", key)
    raw.ask("SADD", "dead:pending", ids[0], ids[3])
    raw.ask("HSET", "meta", "layout", 1)
    assert await store.migrate() == (1, LAYOUT)
    found = await store.dead.find(only_open=True)
    assert [letter.job_id for letter in found] == [ids[3], ids[1], ids[0]]
    assert await store.metrics.dead_count() == 3
    assert await store.metrics.dead_count("t1") == 2
    assert (await store.dead.groups(), await store.dead.groups(only_open=True)) == known
    assert [letter.job_id for letter in await store.dead.find(canary_of="3fa9c2d1")] == ids[:1]
    audit(raw.client, raw.prefix)
    assert "dead:pending" not in raw.names()
    assert await store.migrate() == (LAYOUT, LAYOUT)
