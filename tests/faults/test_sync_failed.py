"""Fault 25: the disk refuses a sync, and what it should have kept is gone."""

import asyncio
from pathlib import Path

import pytest

from penstock.model.store_errors import StoreUnavailable
from penstock.store.sqlite import connect
from tests.faults.support.disk import mounted
from tests.faults.support.facts import figure, integrity, job_ids
from tests.faults.support.tape import Cut, ForgetfulTape
from tests.faults.support.work import claim_of, completed, new_jobs, opened

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]


@pytest.mark.quick
async def test_nothing_is_acknowledged_on_a_failed_sync_and_all_that_was_survives_a_power_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "WAL_PAGES", 60)  # many checkpoints, whose syncs fail too
    path, disk = tmp_path / "work.db", ForgetfulTape()
    acknowledged: set[str] = set()
    done: set[str] = set()
    refusals: list[str] = []
    with mounted(disk):
        async with opened(path) as store:
            for number in range(figure(short=150, full=2_000)):
                jobs = new_jobs(2)
                disk.failing = number % 4 == 3
                try:
                    await store.jobs.enqueue(jobs)
                    assert not disk.failing
                    acknowledged |= {job.id for job in jobs}
                    leases = (await store.jobs.claim(claim_of("worker:1", 1))).leases
                    await store.jobs.settle("worker:1", list(map(completed, leases)))
                    done |= {lease.id for lease in leases}
                except StoreUnavailable as error:
                    refusals.append(error.reason)
            disk.failing = False
            tape = list(disk.changes)
    assert len(refusals) == figure(short=37, full=500)
    assert all("SQLITE_IOERR_FSYNC" in reason for reason in refusals)

    cut = Cut()
    for change in tape:
        cut.follow(change)
    cut.restore(tmp_path / "after")
    survivor = tmp_path / "after" / path.name
    async with opened(survivor) as store:
        assert acknowledged <= job_ids(survivor)
        ended = await store.reader.get(list(done))
        assert {job.status.value for job in ended} == {"completed"}
    assert integrity(survivor) == "ok"


async def test_every_operation_that_shared_the_failed_commit_is_refused(tmp_path: Path) -> None:
    path, disk = tmp_path / "work.db", ForgetfulTape()
    with mounted(disk):
        async with opened(path) as store:
            disk.failing = True
            answers = await asyncio.gather(
                *(store.jobs.enqueue(new_jobs(1)) for _ in range(20)), return_exceptions=True
            )
            disk.failing = False
            assert {type(answer) for answer in answers} == {StoreUnavailable}
            assert job_ids(path) == set()
            await store.jobs.enqueue(new_jobs(1))
    assert len(job_ids(path)) == 1
