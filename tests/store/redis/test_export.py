"""What is read out of Redis to be moved elsewhere."""

import pytest

from penstock.model.store_errors import StoreError
from penstock.store.contract import Part
from penstock.store.redis.store import RedisStore
from proof.conformance.build import claim_all, enqueue
from tests.support.redis_raw import RawKeys


async def test_a_document_that_cannot_be_read_is_named_with_what_to_do_about_it(
    store: RedisStore, raw: RawKeys
) -> None:
    damaged = await enqueue(store)
    raw.ask("HSET", f"job:{damaged}", "doc", "nonsense")
    with pytest.raises(StoreError, match=f"holds job {damaged}, whose document cannot be read"):
        await store.transfer.page(Part.JOBS, None, 10)
    assert await claim_all(store) == []
    await store.dead.purge([damaged])
    assert (await store.transfer.page(Part.JOBS, None, 10)).rows == []
