"""Fault 24: the disk is full."""

import asyncio
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock.model.job import NewJob
from penstock.model.states import Status
from penstock.model.store_errors import StoreFull
from penstock.store.contract import Store
from tests.faults.support.disk import SmallDisk, mounted
from tests.faults.support.facts import integrity, job_ids
from tests.faults.support.work import claim_of, completed, new_jobs, opened

pytestmark = pytest.mark.faults

ROOM = 8 * 1024 * 1024
BALLAST = 6 * 1024 * 1024
PAYLOAD = '"' + "x" * 20_000 + '"'
ENOUGH = 500


class Full(NamedTuple):
    """A folder on a small disk, and a way to make room there."""

    folder: Path
    make_room: Callable[[], None]


@contextmanager
def quota(folder: Path) -> Iterator[Full]:
    disk = SmallDisk(ROOM - BALLAST)
    with mounted(disk):
        yield Full(folder, lambda: setattr(disk, "room", 2 * ROOM))


@contextmanager
def tmpfs(folder: Path) -> Iterator[Full]:
    ballast = folder / "ballast"
    ballast.write_bytes(bytes(BALLAST))
    try:
        yield Full(folder, ballast.unlink)
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def mounts_tmpfs(folder: Path) -> bool:
    command = ["mount", "-t", "tmpfs", "-o", f"size={ROOM}", "penstock-test", str(folder)]
    try:
        return subprocess.run(command, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.fixture(params=["tmpfs where it can be mounted", "quota"])
def small(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Full]:
    real = request.param != "quota" and mounts_tmpfs(tmp_path)
    with (tmpfs if real else quota)(tmp_path) as full:
        yield full


async def fill(store: Store) -> tuple[set[str], list[NewJob]]:
    """Enqueue until there is no room: the ids acknowledged, and the jobs refused."""
    acknowledged: set[str] = set()
    for _ in range(ENOUGH):
        jobs = new_jobs(2, payload=PAYLOAD)
        try:
            await store.jobs.enqueue(jobs)
        except StoreFull:
            return acknowledged, jobs
        acknowledged |= {job.id for job in jobs}
    raise AssertionError("the disk never became full")


@pytest.mark.quick
async def test_a_full_disk_is_said_so_loses_nothing_and_work_goes_on_once_there_is_room(
    small: Full,
) -> None:
    path = small.folder / "work.db"
    async with opened(path) as store:
        acknowledged, refused = await fill(store)
        assert len(acknowledged) > 10

        together = [new_jobs(2, payload=PAYLOAD) for _ in range(10)]
        answers = await asyncio.gather(*map(store.jobs.enqueue, together), return_exceptions=True)
        assert {type(answer) for answer in answers} == {StoreFull}
        assert job_ids(path) == acknowledged
        assert len(await store.reader.get(list(acknowledged))) == len(acknowledged)

        small.make_room()
        await store.jobs.enqueue(refused)
        acknowledged |= {job.id for job in refused}
        leases = (await store.jobs.claim(claim_of("worker:1", ENOUGH))).leases
        assert {lease.id for lease in leases} == acknowledged
        assert await store.jobs.settle("worker:1", list(map(completed, leases))) == []
        assert job_ids(path) == acknowledged
    assert integrity(path) == "ok"
    async with opened(path) as store:
        jobs = await store.reader.get(list(acknowledged))
        assert {job.status for job in jobs} == {Status.COMPLETED}


async def test_a_store_that_finds_no_room_to_begin_with_says_so_and_opens_once_there_is(
    small: Full,
) -> None:
    filler = small.folder / "filler.db"
    async with opened(filler) as store:
        await fill(store)
        path = small.folder / "work.db"
        with pytest.raises(StoreFull):
            async with opened(path):
                raise AssertionError("there was room")
        small.make_room()
        async with opened(path) as other:
            await other.jobs.enqueue(new_jobs(1))
    assert integrity(path) == "ok"
