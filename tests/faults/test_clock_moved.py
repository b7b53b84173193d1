"""Fault 28: one worker's wall clock is an hour off."""

import time
from glob import glob
from pathlib import Path

import pytest

from penstock.testing.clock import FakeClock
from tests.faults.support.children import Child
from tests.faults.support.waiting import rescued
from tests.faults.support.work import claim_of, new_jobs, opened

pytestmark = [pytest.mark.faults, pytest.mark.quick]

HOUR = 3_600
LIBRARIES = "/usr/lib/*/faketime/libfaketimeMT.so.1"


def shifted_worker(path: Path, seconds: int, libraries: str = LIBRARIES) -> Child:
    """By libfaketime where Debian's package is installed, else by a clock that adds the hour."""
    found = glob(libraries)
    if not found:
        return Child("shifted_worker", path, seconds)
    fake = {
        "LD_PRELOAD": found[0],
        "FAKETIME": f"{seconds:+d}s",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    return Child("shifted_worker", path, 0, env=fake)


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
async def test_a_process_whose_clock_is_an_hour_off_expires_no_lease_early_nor_late(
    tmp_path: Path, seconds: int
) -> None:
    path = tmp_path / "work.db"
    async with opened(path) as store:
        await store.jobs.enqueue(new_jobs(10))
        mine = (await store.jobs.claim(claim_of("steady:1", 10))).leases
        assert len(mine) == 10
        with shifted_worker(path, seconds) as worker:
            clocks = worker.answer()
            assert abs(clocks["now"] / 1000 - time.time() - seconds) < 60
            assert abs(clocks["monotonic"] / 1000 - time.monotonic()) < 60
            assert worker.answer() == []  # it rescues none of ours

            await store.jobs.enqueue(new_jobs(10))
            worker.tell()
            theirs = worker.answer()
            assert len(theirs) == 10
            assert await store.upkeep.rescue() == []  # and we none of its

            await store.jobs.enqueue(new_jobs(5))
            worker.tell()
            brief = worker.answer()
            assert len(brief) == 5
            assert await rescued(store, len(brief)) == set(brief)


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
async def test_a_lease_lasts_by_the_monotonic_clock_wherever_the_wall_clock_goes(
    tmp_path: Path, seconds: int
) -> None:
    path, steady, moved = tmp_path / "work.db", FakeClock(), FakeClock()
    async with opened(path, steady) as ours, opened(path, moved) as theirs:
        await ours.jobs.enqueue(new_jobs(20))
        await ours.jobs.claim(claim_of("steady:1", 10))
        await theirs.jobs.claim(claim_of("moved:1", 10))

        moved.set_wall(moved.now() + seconds * 1000)
        assert await theirs.upkeep.rescue() == []
        steady.advance(60)
        moved.advance(60)
        assert await ours.upkeep.rescue() == []
        assert await theirs.upkeep.rescue() == []
        steady.advance(0.001)
        assert len(await ours.upkeep.rescue()) == 20


async def test_a_process_that_opens_the_store_with_a_wrong_clock_leaves_all_leases_alone(
    tmp_path: Path,
) -> None:
    path, steady, moved = tmp_path / "work.db", FakeClock(), FakeClock()
    moved.set_wall(moved.now() + HOUR * 1000)
    async with opened(path, steady) as ours:
        await ours.jobs.enqueue(new_jobs(10))
        await ours.jobs.claim(claim_of("steady:1", 10))
        async with opened(path, moved) as theirs:
            assert await theirs.upkeep.rescue() == []
        assert await ours.upkeep.rescue() == []
