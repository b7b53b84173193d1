"""Jobs that ended long ago leave their store for files, and are asked for and erased there."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from penstock import Penstock
from penstock.events import archive, job_archive
from penstock.events import erase as erase_events
from penstock.events.background import StillRunning
from penstock.events.consumer import consumer_of
from penstock.events.event import Session
from penstock.events.parquet import ArchiveDiffers, NoArchive
from penstock.events.pool import catch_up
from penstock.model.errors import InvalidOption
from penstock.operate import erase as erasing
from penstock.operate.erase import erase
from penstock.store.contract import Report
from penstock.testing.clock import FakeClock
from penstock.upkeep.prune import pruning_of, retention_of
from proof.conformance.build import (
    OWNER,
    Ending,
    buried,
    cancelled,
    claim_all,
    completed,
    failed,
    running,
)
from tests.support.events import DAY, KINDS, NOON, an_event, events_app

pytestmark = pytest.mark.thorough("postgres", "valkey")

SECOND = 1_000
SECRET = "the heron fishes at dusk"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(NOON)


@pytest.fixture(params=KINDS)
async def app(
    request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path
) -> AsyncIterator[Penstock]:
    async with events_app(request.param, request, clock, tmp_path, jobs_archive_days=30) as app:
        yield app


async def ended(app: Penstock, ending: Ending = completed, **fields: Any) -> str:
    """A job that has failed once, has a line in its log, and has ended."""
    lease = await running(app.store, **fields)
    await app.store.jobs.settle(OWNER, [failed(lease, retry_in_ms=0)])
    [lease] = await claim_all(app.store)
    told = Report(id=lease.id, fence=lease.fence, logs=[(app.store.clock.now(), "info", "hello")])
    await app.store.jobs.report(OWNER, [told])
    await app.store.jobs.settle(OWNER, [ending(lease)])
    return lease.id


def advance(clock: FakeClock, days: int) -> None:
    clock.advance(seconds=days * DAY / SECOND)


async def jobs(app: Penstock) -> set[str]:
    """The jobs that are in the store."""
    return {job.id for job in await app.find(limit=99)}


async def rows(app: Penstock) -> list[dict[str, Any]]:
    """The jobs that are in files of the archive."""
    paths = archive.paths_of(app, await job_archive.files(app))
    return [row for path in paths for row in pq.read_table(path).to_pylist()]


def in_folder(tmp_path: Path) -> list[str]:
    """The files of the archive, whether it knows them or not."""
    return sorted(path.name for path in (tmp_path / "archive").rglob("*") if path.is_file())


@pytest.mark.quick("postgres", "valkey")
async def test_jobs_of_whole_months_leave_with_their_executions_and_logs(
    app: Penstock, clock: FakeClock
) -> None:
    first = await ended(app, tenant_id="acme", tags=("a", "b"), payload='{"n": 1}')
    second = await ended(app, cancelled)
    before = {each: (await app.store.reader.get([each]))[0] for each in (first, second)}
    ran = await app.store.reader.executions(first)
    advance(clock, 31)
    third = await ended(app)
    advance(clock, 28)
    assert await app.events.archive_jobs() == [], "some days of January are not old enough"
    advance(clock, 3)
    made = await app.events.archive_jobs()
    assert [(each.file[:7], each.rows, each.subject) for each in made] == [("2026-01", 2, "jobs")]
    assert await jobs(app) == {third}
    assert await app.store.reader.executions(first) == []
    told = {row["id"]: row for row in await rows(app)}
    assert told.keys() == {first, second}
    row = told[first]
    assert (row["status"], row["tenant_id"], row["tags"]) == ("completed", "acme", ["a", "b"])
    assert (row["payload"], row["completed_at"]) == ('{"n": 1}', before[first].completed_at)
    assert [each["status"] for each in row["executions"]] == [each.status for each in ran]
    assert len(row["executions"]) == 2
    assert [line["message"] for line in row["logs"]] == ["hello"]
    assert [each.state for each in await job_archive.files(app)] == ["whole"]
    assert await app.events.archive_jobs() == []


async def test_each_month_has_files_of_its_own_and_none_holds_too_many(
    app: Penstock, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_archive, "PART", 2)
    for _ in range(3):
        await ended(app)
    advance(clock, 31)
    await ended(app)
    advance(clock, 100)
    made = await app.events.archive_jobs()
    assert [(each.file[:7], each.rows) for each in made] == [
        ("2026-01", 2),
        ("2026-01", 1),
        ("2026-02", 1),
    ]
    assert await jobs(app) == set()


async def test_a_file_is_closed_when_its_jobs_are_large(
    app: Penstock, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(job_archive, "PART_BYTES", 100)
    for _ in range(3):
        await ended(app, payload=f'{{"text": "{"x" * 200}"}}')
    advance(clock, 100)
    assert [each.rows for each in await app.events.archive_jobs()] == [1, 1, 1]


async def test_dead_letters_stay_as_long_as_they_are_kept_and_so_do_the_last_of_a_type(
    app: Penstock, clock: FakeClock
) -> None:
    dead, other = await ended(app, buried), await ended(app)
    advance(clock, 70)
    await app.events.archive_jobs()
    assert await jobs(app) == {dead}
    await app.events.archive_jobs(clock.now())
    assert await jobs(app) == {dead}
    advance(clock, 60)
    await app.events.archive_jobs()
    assert await jobs(app) == set()
    assert {row["id"]: row["status"] for row in await rows(app)} == {
        dead: "dead_letter",
        other: "completed",
    }


async def test_what_is_archived_is_not_pruned_before(app: Penstock, clock: FakeClock) -> None:
    kept, dead = await ended(app), await ended(app, buried)
    advance(clock, 200)
    for _ in range(2):
        assert (await app.store.upkeep.prune(pruning_of(app))).jobs == 0
    assert await jobs(app) == {kept, dead}


async def test_it_is_off_unless_told_and_by_hand_it_takes_a_time(
    request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path
) -> None:
    async with events_app("sqlite", request, clock, tmp_path) as app:
        assert pruning_of(app) == retention_of(app.settings)
        await ended(app)
        advance(clock, 100)
        await job_archive.keep_up(app)
        assert len(await jobs(app)) == 1
        with pytest.raises(InvalidOption, match="jobs_archive_days"):
            await app.events.archive_jobs()
        assert [each.rows for each in await app.events.archive_jobs(clock.now())] == [1]
    async with events_app("sqlite", request, clock, tmp_path, archive="") as app:
        with pytest.raises(NoArchive, match="has no folder"):
            await app.events.archive_jobs(clock.now())


async def test_the_last_of_a_type_are_spared(
    request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path
) -> None:
    async with events_app("sqlite", request, clock, tmp_path) as app:
        await ended(app)
        last = await ended(app)
        advance(clock, 100)
        app.settings.keep_last["work"] = 1
        await app.events.archive_jobs(clock.now())
        assert await jobs(app) == {last}


async def test_a_file_that_reads_back_otherwise_deletes_no_job(
    app: Penstock, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ended(app)
    await ended(app)
    advance(clock, 100)
    read = pq.read_table

    def lossy(path: Any, **given: Any) -> Any:
        return read(path, **given).slice(1)

    with monkeypatch.context() as patched:
        patched.setattr(pq, "read_table", lossy)
        with pytest.raises(ArchiveDiffers):
            await app.events.archive_jobs()
    assert len(await jobs(app)) == 2
    assert in_folder(tmp_path) == []
    assert len(await app.events.archive_jobs()) == 1


@pytest.mark.parametrize("step", ["finish", "prune_jobs", "have_left"])
@pytest.mark.thorough
async def test_what_breaks_off_at_any_step_is_done_by_the_next_pass(
    app: Penstock, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    told = {await ended(app), await ended(app)}
    advance(clock, 100)
    run = archive.run

    def killed(*_: Any, **__: Any) -> Any:
        raise OSError("killed")

    async def stops(app: Penstock, name: str, bindings: Any) -> int:
        return killed() if name == step else await run(app, name, bindings)

    with monkeypatch.context() as patched:
        if step == "finish":
            patched.setattr(archive, "finish", killed)
        elif step == "prune_jobs":
            patched.setattr(app.store.upkeep, "prune_jobs", killed)
        else:
            patched.setattr(archive, "run", stops)
        with pytest.raises(OSError, match="killed"):
            await app.events.archive_jobs()
    assert len(in_folder(tmp_path)) == 1
    seen = await jobs(app) | {row["id"] for row in await rows(app)}
    assert seen == told, "each job is in the store, in the archive, or in both"
    advance(clock, 1)
    await app.events.archive_jobs()
    assert await jobs(app) == set()
    assert sorted(row["id"] for row in await rows(app)) == sorted(told)
    assert in_folder(tmp_path) == [each.file for each in await job_archive.files(app)]


async def test_one_process_at_a_time_archives_jobs(
    app: Penstock, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = [await ended(app), await ended(app)]
    advance(clock, 100)
    write = archive.write_file

    async def slow(*given: Any) -> Any:
        monkeypatch.undo()
        with pytest.raises(StillRunning, match="archive:jobs"):
            await app.events.archive_jobs()
        await job_archive.keep_up(app)
        return await write(*given)

    monkeypatch.setattr(archive, "write_file", slow)
    await app.events.archive_jobs()
    assert sorted(row["id"] for row in await rows(app)) == sorted(told)
    await ended(app)
    advance(clock, 100)
    assert len(await app.events.archive_jobs()) == 1, "who is done lets others begin"


async def test_a_job_that_was_requeued_meanwhile_stays_and_its_last_end_counts(
    app: Penstock, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = await ended(app, cancelled)
    advance(clock, 100)
    write = archive.write_file

    async def slow(*given: Any) -> Any:
        told = await write(*given)
        monkeypatch.undo()
        await app.requeue(job)
        [lease] = await claim_all(app.store)
        await app.store.jobs.settle(OWNER, [completed(lease)])
        return told

    monkeypatch.setattr(archive, "write_file", slow)
    await app.events.archive_jobs()
    assert await jobs(app) == {job}
    advance(clock, 100)
    await app.events.archive_jobs()
    assert await jobs(app) == set()
    sql = "SELECT id, status FROM jobs"
    assert (await app.events.query(sql)).rows == [(job, "completed")]


async def test_archived_jobs_are_asked_for_in_sql(app: Penstock, clock: FakeClock) -> None:
    assert (await app.events.query("SELECT count(*) FROM jobs")).rows == [(0,)]
    mine = await ended(app, tenant_id="acme")
    advance(clock, 10)
    await ended(app, tenant_id="beta")
    advance(clock, 100)
    await app.events.archive_jobs()
    sql = "SELECT type, count(*) FROM jobs GROUP BY 1"
    assert (await app.events.query(sql)).rows == [("work", 2)]
    assert (await app.events.query(sql, tenant="acme")).rows == [("work", 1)]
    assert (await app.events.query(sql, since=NOON + 5 * DAY)).rows == [("work", 1)]
    ran = (
        "SELECT j.id, e.fence, e.status, l.message FROM jobs j JOIN job_executions e"
        " ON e.job_id = j.id JOIN job_logs l ON l.job_id = j.id ORDER BY e.fence"
    )
    answer = await app.events.query(ran, tenant="acme")
    assert [(row[0], row[2], row[3]) for row in answer.rows] == [
        (mine, "failed", "hello"),
        (mine, "completed", "hello"),
    ]


@pytest.mark.parametrize("whose", [{"tenant": "acme"}, {"person": "ada"}])
@pytest.mark.thorough("postgres")
async def test_what_a_tenant_or_a_person_enqueued_is_erased_in_the_archive(
    app: Penstock, clock: FakeClock, tmp_path: Path, whose: dict[str, str]
) -> None:
    gone = await ended(app, tenant_id="acme", created_by="ada", payload=f'{{"x": "{SECRET}"}}')
    left = await ended(app, tenant_id="beta", created_by="bob")
    advance(clock, 31)
    await ended(app, tenant_id="acme", created_by="ada")
    advance(clock, 100)
    assert len(await app.events.archive_jobs()) == 2
    before = in_folder(tmp_path)
    await erase(app, **whose)
    assert [row["id"] for row in await rows(app)] == [left]
    [file] = in_folder(tmp_path)
    assert file not in before
    assert gone not in str((await app.events.query("SELECT * FROM jobs")).rows)


async def test_an_erasure_reaches_a_file_whose_jobs_are_still_being_deleted(
    app: Penstock, clock: FakeClock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ended(app, tenant_id="acme")
    left = await ended(app, tenant_id="beta")
    advance(clock, 100)

    async def killed(*_: Any) -> int:
        raise OSError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(app.store.upkeep, "prune_jobs", killed)
        with pytest.raises(OSError, match="killed"):
            await app.events.archive_jobs()
    await erase(app, tenant="acme")
    assert await jobs(app) == {left}
    await app.events.archive_jobs()
    assert [row["id"] for row in await rows(app)] == [left]
    assert await jobs(app) == set()
    assert len(in_folder(tmp_path)) == 1


@pytest.mark.parametrize("moment", ["while it is written", "before its jobs are erased"])
async def test_an_archiver_leaves_nothing_of_what_is_erased_meanwhile(
    app: Penstock,
    clock: FakeClock,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    moment: str,
) -> None:
    await ended(app, tenant_id="acme")
    left = await ended(app, tenant_id="beta")
    advance(clock, 100)
    if moment == "while it is written":
        write = archive.write_file

        async def late(*given: Any) -> Any:
            monkeypatch.undo()
            await erase(app, tenant="acme")
            return await write(*given)

        monkeypatch.setattr(archive, "write_file", late)
        await app.events.archive_jobs()
    else:
        once = erasing._erase_once

        async def then(*given: Any) -> Any:
            monkeypatch.undo()
            await archive_without_deleting(app)
            return await once(*given)

        monkeypatch.setattr(erasing, "_erase_once", then)
        await erase(app, tenant="acme")
        await app.events.archive_jobs()
    assert [row["id"] for row in await rows(app)] == [left]
    assert len(in_folder(tmp_path)) == 1


async def archive_without_deleting(app: Penstock) -> None:
    """Archive as a process does that is killed before it deletes."""
    with pytest.MonkeyPatch.context() as patched:

        async def killed(*_: Any) -> int:
            raise OSError("killed")

        patched.setattr(app.store.upkeep, "prune_jobs", killed)
        with pytest.raises(OSError, match="killed"):
            await app.events.archive_jobs()


async def make_jobs_of_events(app: Penstock) -> None:
    """A job of an event of each of two sessions, by a consumer."""

    @app.job(name="work")
    async def work(text: str) -> None: ...

    def apply(tx: Any, events: Any) -> None:
        for event in events:
            tx.enqueue(work.new(event.payload["text"]), event=event)

    app.consumer.add(consumer_of(apply, name="mailer"))
    for session in ("s1", "s2"):
        told = {"text": f"{SECRET} of {session}"}
        await app.events.append(an_event(session, payload=told, timestamp=NOON, event_id=session))
    await catch_up(app)


async def test_archived_jobs_of_an_erased_session_go_and_what_they_made(
    app: Penstock, clock: FakeClock
) -> None:
    await make_jobs_of_events(app)
    for lease in await claim_all(app.store):
        await app.store.jobs.settle(OWNER, [completed(lease)])
        if "s1" in lease.payload:
            child = await ended(app, parent_job_id=lease.id)
    advance(clock, 100)
    grandchild = await ended(app, parent_job_id=child)
    await app.events.archive_jobs()
    assert len(await rows(app)) == 3
    erased = await app.events.erase(Session("", "shop", "s1"))
    assert (erased.parts["archived jobs"], erased.parts["jobs"]) == (2, 1)
    [row] = await rows(app)
    assert "s2" in row["payload"]
    assert grandchild not in await jobs(app)


async def test_an_archiver_leaves_nothing_of_jobs_of_a_session_that_is_erased_meanwhile(
    app: Penstock, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_jobs_of_events(app)
    for lease in await claim_all(app.store):
        await app.store.jobs.settle(OWNER, [completed(lease)])
    advance(clock, 100)
    reached, go_on = asyncio.Event(), asyncio.Event()
    write, erase_jobs = archive.write_file, erase_events.erase_jobs
    archiving: list[asyncio.Task[Any]] = []

    async def slow(*given: Any) -> Any:
        reached.set()
        await go_on.wait()
        return await write(*given)

    async def then(*given: Any) -> int:
        archiving.append(asyncio.create_task(app.events.archive_jobs()))
        await reached.wait()  # it has read the jobs that go now
        return await erase_jobs(*given)

    monkeypatch.setattr(archive, "write_file", slow)
    monkeypatch.setattr(erase_events, "erase_jobs", then)
    await app.events.erase(Session("", "shop", "s1"))
    go_on.set()
    await archiving[0]
    assert ["s2" in row["payload"] for row in await rows(app)] == [True]
