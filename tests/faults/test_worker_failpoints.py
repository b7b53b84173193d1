"""Faults 2 and 3: a worker that dies around its writes."""

from collections import Counter
from pathlib import Path

import pytest

from proof.failpoints import EXIT_CODE
from tests.faults.support.children import Child
from tests.faults.support.facts import figure, integrity, query
from tests.faults.support.jobs import quick
from tests.faults.support.work import opened
from tests.faults.support.workers import Bench

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

DEATHS = figure(short=1, full=200)


@pytest.mark.quick
async def test_a_job_whose_worker_died_between_claim_and_start_runs_exactly_once(
    tmp_path: Path,
) -> None:
    bench = await die_at("claimed", tmp_path)
    assert Counter(effects_per_job(bench).values()) == {1: DEATHS}


async def test_a_worker_that_died_before_its_claim_was_written_leaves_the_job_untouched(
    tmp_path: Path,
) -> None:
    bench = await die_at("before_claim", tmp_path)
    assert Counter(effects_per_job(bench).values()) == {1: DEATHS}
    assert bench.figure("SELECT max(rescues) FROM jobs") == 0


@pytest.mark.quick
async def test_a_job_whose_worker_died_after_the_effect_has_exactly_one_duplicate(
    tmp_path: Path,
) -> None:
    bench = await die_at("before_settle", tmp_path)
    assert Counter(effects_per_job(bench).values()) == {2: DEATHS}
    assert query(bench.path, "SELECT DISTINCT attempts, rescues FROM jobs") == [(1, 1)]


async def test_a_job_that_was_settled_when_its_worker_died_is_not_repeated(
    tmp_path: Path,
) -> None:
    bench = await die_at("settled", tmp_path)
    assert Counter(effects_per_job(bench).values()) == {1: DEATHS}
    assert bench.figure("SELECT max(rescues) FROM jobs") == 0


async def die_at(point: str, folder: Path) -> Bench:
    """A new job and a worker that dies over it, many times; then a worker that lives."""
    bench = Bench(folder)
    async with opened(bench.path) as store:
        for number in range(DEATHS):
            await store.jobs.enqueue([quick.new(bench.where).job])
            with Child("doomed_worker", bench.url, point, f"doomed:{number}") as worker:
                assert worker.wait() == EXIT_CODE
        for number in range(DEATHS):
            await store.upkeep.rescue(owner=f"doomed:{number}")
        with bench.worker(burst=True) as worker:
            assert worker.wait(600) == 0
    assert bench.counts() == {"completed": DEATHS}
    assert integrity(bench.path) == "ok"
    return bench


def effects_per_job(bench: Bench) -> Counter[str]:
    return Counter(effect.job_id for effect in bench.effects())
