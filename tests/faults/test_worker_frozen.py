"""Fault 5, at the store: a worker frozen past its leases wakes up and writes."""

import signal
from pathlib import Path

import pytest

from tests.faults.support.children import Child
from tests.faults.support.facts import digest, figure, integrity
from tests.faults.support.waiting import rescued
from tests.faults.support.work import claim_of, completed, new_jobs, opened

pytestmark = pytest.mark.faults

LEASE_MS = 200


@pytest.mark.quick
async def test_a_worker_frozen_past_its_leases_cannot_write_under_any_of_them(
    tmp_path: Path,
) -> None:
    path, count = tmp_path / "work.db", figure(short=200, full=1_000)
    async with opened(path) as store:
        await store.jobs.enqueue(new_jobs(count))
        with Child("frozen_worker", path, count, LEASE_MS) as worker:
            assert worker.answer() == count
            worker.signal(signal.SIGSTOP)
            assert len(await rescued(store, count)) == count

            # A third is done by another worker, a third is running there, a third waits.
            mine = (await store.jobs.claim(claim_of("other:1", count * 2 // 3))).leases
            done = [completed(lease) for lease in mine[: count // 3]]
            assert await store.jobs.settle("other:1", done) == []

            worker.tell()
            worker.signal(signal.SIGCONT)
            assert worker.answer() == count - len(mine)
            before = digest(path)
            worker.tell()
            refused = dict(zip(("settled", "reported", "renewed"), worker.answer(), strict=True))

            assert refused == {"settled": count, "reported": count, "renewed": count}
            assert digest(path) == before
    assert integrity(path) == "ok"
