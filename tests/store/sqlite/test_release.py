"""The end of a parent costs about the same however large its result is."""

import tracemalloc
from pathlib import Path

from penstock.model.dependency import Edge, EdgeKind
from penstock.model.job import NewJob
from penstock.model.outcome import Completed
from penstock.store.contract import Claim
from penstock.store.open import open_store
from penstock.testing.clock import FakeClock

CHILDREN, RESULT_SIZE = 200, 500_000


async def test_children_that_ask_about_a_large_result_do_not_each_get_a_copy(
    tmp_path: Path,
) -> None:
    clock = FakeClock()
    store = open_store(f"sqlite:///{tmp_path}/work.db", clock)
    await store.open()
    asks = Edge(parent_id="parent", kind=EdgeKind.CONDITIONAL, condition="len(result) > 10")
    children = [
        NewJob(id=f"child {n}", type="mail", payload="{}", after=(asks,)) for n in range(CHILDREN)
    ]
    await store.jobs.enqueue([NewJob(id="parent", type="mail", payload="{}"), *children])
    claim = Claim(owner="host:1", types=["mail"], limit=999, start=999, lease_ms=30_000)
    [lease] = (await store.jobs.claim(claim)).leases
    done = Completed(
        id="parent",
        fence=lease.fence,
        type="mail",
        queue="default",
        started_at=clock.now(),
        result=f'"{"x" * RESULT_SIZE}"',
    )
    tracemalloc.start()
    await store.jobs.settle("host:1", [done])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < CHILDREN * RESULT_SIZE / 10
    assert len((await store.jobs.claim(claim)).leases) == CHILDREN
    await store.close()
