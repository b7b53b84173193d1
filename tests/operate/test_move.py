from pathlib import Path
from typing import cast

import apsw
import pytest

from penstock.model.states import Status
from penstock.model.transfer import (
    StoreMoved,
    TargetInUse,
)
from penstock.operate.move import Mover, counted_parts
from penstock.store.contract import JobFilter, Part, Store, Tally
from penstock.testing.clock import FakeClock
from proof.conformance.build import OWNER, claim_all, completed, enqueue, running
from proof.conformance.furnish import everything, furnish
from tests.operate.moving import Opened


async def test_everything_is_in_the_other_store_and_the_old_one_says_where(
    full: Store, empty: Store
) -> None:
    before = await everything(full)
    moved = await Mover(full, empty).run()
    assert not moved.resumed
    assert moved.sent == sum(moved.tally.parts.values())
    after = await everything(empty)
    assert {part: after[part] for part in Part if part is not Part.METRICS} == {
        part: before[part] for part in Part if part is not Part.METRICS
    }
    assert (await empty.transfer.marks()).keys() == {"came_by"}
    assert "moved_to" in await full.transfer.marks()


def test_how_much_of_each_part_there_is_reads_as_a_sentence() -> None:
    counts = {Part.JOBS: 1, Part.LOGS: 2, Part.DEPENDENCIES: 1, Part.LINES: 1, Part.AUDIT: 21}
    tally = Tally(dict.fromkeys(Part, 0) | counts, {}, 0, 0)
    assert counted_parts(tally) == [
        *("1 job", "2 log lines", "1 dependency", "1 order key", "21 audit lines"),
    ]


async def test_a_store_stays_in_use_if_it_is_kept(full: Store, empty: Store) -> None:
    await Mover(full, empty, keep=True).run()
    assert await full.transfer.marks() == {}
    assert await everything(full) == await everything(empty)


async def test_a_store_can_be_moved_on_and_back(opened: Opened, clock: FakeClock) -> None:
    first, second = await opened("memory"), await opened("memory")
    await furnish(first, clock)
    before = await everything(first)
    await Mover(first, second).run()
    with pytest.raises(StoreMoved):
        await Mover(first, second).run()
    with pytest.raises(TargetInUse, match="--replace"):
        await Mover(second, first).run()
    await Mover(second, first, replace=True).run()
    assert (await everything(first))[Part.JOBS] == before[Part.JOBS]
    assert (await first.transfer.marks()).keys() == {"came_by"}
    assert "moved_to" in await second.transfer.marks()


async def test_a_move_through_every_store_and_back_changes_nothing(
    opened: Opened, clock: FakeClock, postgres_store_url: str, valkey_url: str
) -> None:
    stores = [await opened(url) for url in ("memory", postgres_store_url, valkey_url)]
    await furnish(stores[0], clock)
    await stores[0].metrics.roll_up()
    before = await everything(stores[0])
    lease = await running(stores[0])
    tallies = []
    for source, target in ((0, 1), (1, 2), (2, 1), (1, 0)):
        moved = await Mover(stores[source], stores[target], replace=True, page=10).run()
        tallies.append(moved.tally)
    assert all(tally == tallies[0] for tally in tallies)
    assert await stores[0].jobs.settle(OWNER, [completed(lease)]) == []
    after = await everything(stores[0])
    for part in Part:
        if part not in (Part.JOBS, Part.EXECUTIONS, Part.METRICS, Part.CHANGES):
            assert after[part] == before[part], part
    assert after[Part.CHANGES][:-1] == before[Part.CHANGES]


async def test_moved_jobs_are_done(
    opened: Opened, clock: FakeClock, postgres_store_url: str
) -> None:
    source, target = await opened("memory"), await opened(postgres_store_url)
    ids = [await enqueue(source) for _ in range(50)]
    await Mover(source, target, page=20).run()
    leases = await claim_all(target)
    assert [lease.id for lease in leases] == ids
    assert await target.jobs.settle(OWNER, [completed(lease) for lease in leases]) == []
    assert {job.status for job in await target.reader.find(JobFilter(limit=99))} == {
        Status.COMPLETED
    }


@pytest.mark.parametrize("kind", ["postgres_store_url", "valkey_url"])
async def test_rows_that_a_hand_has_spoilt_are_moved_as_far_as_they_go(
    opened: Opened, tmp_path: Path, request: pytest.FixtureRequest, kind: str
) -> None:
    source = await opened(f"sqlite:///{tmp_path}/work.db")
    target = await opened(request.getfixturevalue(kind))
    ids = [await enqueue(source, tags=("a",)) for _ in range(4)]
    connection = cast("apsw.Connection", source.connection())
    spoil = "UPDATE jobs SET {} WHERE id = ?"
    connection.execute(spoil.format("payload = CAST(x'FF00' AS TEXT)"), (ids[0],))
    connection.execute(spoil.format("payload = 'not json'"), (ids[1],))
    connection.execute(spoil.format("error = 'nul ' || char(0) || ' in it'"), (ids[2],))
    connection.execute(spoil.format("tags = 'b'"), (ids[3],))
    connection.close()
    await Mover(source, target).run()
    jobs = {job.id: job for job in await target.reader.get(ids)}
    assert len(jobs) == 4
    assert "not json" in jobs[ids[1]].payload
    assert str(jobs[ids[2]].error).startswith("nul ")
    assert jobs[ids[3]].tags == ("b",)
