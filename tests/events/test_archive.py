"""Old months leave the log for files, and are still there for who asks, rebuilds or erases."""

import asyncio
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from penstock import Penstock
from penstock.events import archive, parquet
from penstock.events.archive import NotConsumed
from penstock.events.event import InvalidEvent, Session
from penstock.events.late import MOST_LOOKS
from penstock.events.log import Appended, EventFilter
from penstock.events.parquet import ArchiveDiffers, NoArchive
from penstock.events.pool import catch_up
from penstock.events.rebuild import rebuild
from penstock.model.errors import InvalidOption, MissingExtra
from penstock.model.store_errors import StoreUnavailable
from penstock.testing.clock import FakeClock
from proof.tally import Tally, totals
from proof.tally import tally as tally_extension
from tests.support.events import DAY, NOON, an_event, events_app

pytestmark = pytest.mark.thorough("postgres")

S1 = Session("", "shop", "s1")
APRIL = NOON + 100 * DAY


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(APRIL)


async def fill(app: Penstock) -> None:
    """Two events of a session and one of another in each of January, February and March 2026."""
    told = [
        an_event(session, event_id=f"{month}-{n}", timestamp=NOON + month * 31 * DAY + n)
        for month in range(3)
        for n, session in enumerate(("s1", "s1", f"s{month + 2}"))
    ]
    await app.events.append_many(told)


async def ids(app: Penstock) -> list[str]:
    """The events that are in the log."""
    return [event.event_id for event in await app.events.find(EventFilter(platform="shop"))]


@pytest.mark.quick("postgres")
async def test_whole_months_leave_the_log_and_the_last_event_stays(
    app: Penstock, tmp_path: Path
) -> None:
    await fill(app)
    made = await app.events.archive(NOON + 40 * DAY)
    assert [(each.file[:7], each.rows) for each in made] == [("2026-01", 3)]
    assert len(await ids(app)) == 6
    made = await app.events.archive(APRIL)
    assert [(each.file[:7], each.rows) for each in made] == [("2026-02", 3), ("2026-03", 2)]
    assert await ids(app) == ["2-2"]
    assert (await app.events.append("tool_use")).sequence > 9


async def test_a_file_holds_what_the_log_held(app: Penstock, tmp_path: Path) -> None:
    payload = {"amount": 7, "text": 'ä\0"', "cwd": "/home", "input_tokens": 12}
    told = an_event("s1", payload=payload, tenant_id="acme", person="ada", timestamp=NOON)
    await app.events.append(told)
    await app.events.append("last")
    before = (await app.events.find(EventFilter(session_id="s1")))[0]
    [made] = await app.events.archive(NOON + 40 * DAY)
    [row] = pq.read_table(tmp_path / "archive" / "2026" / made.file).to_pylist()
    assert parquet.event_of(row) == before
    assert (row["cwd"], row["input_tokens"], row["codec"]) == ("/home", 12, "zstd")
    mode = (tmp_path / "archive" / "2026" / made.file).stat().st_mode
    assert mode & 0o77 == 0


async def test_a_file_that_reads_back_otherwise_deletes_nothing(
    app: Penstock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(app)
    read = pq.read_table

    def lossy(path: Any, **given: Any) -> Any:
        return read(path, **given).slice(1)

    with monkeypatch.context() as patched:
        patched.setattr(pq, "read_table", lossy)
        with pytest.raises(ArchiveDiffers):
            await app.events.archive(APRIL)
    assert len(await ids(app)) == 9
    assert [path for path in (tmp_path / "archive").rglob("*") if path.is_file()] == []
    assert len(await app.events.archive(APRIL)) == 3


async def test_what_changes_while_it_is_archived_is_read_again(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(app)
    write = archive.write_file
    changed: list[int] = []

    async def slow(*given: Any) -> Any:
        told = await write(*given)
        if not changed:
            changed.append(1)
            await app.events.erase(S1)
        return told

    monkeypatch.setattr(archive, "write_file", slow)
    made = await app.events.archive(NOON + 40 * DAY)
    assert [(each.rows, each.erased) for each in made] == [(3, 2)]
    assert len(await archive.files(app)) == 1
    assert await archive.files(app, "writing") == []


async def test_what_a_killed_archiver_wrote_goes_with_the_session_at_once(
    app: Penstock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(app)

    def killed(*_: Any, **__: Any) -> None:
        raise OSError("killed")

    with monkeypatch.context() as patched:
        patched.setattr(archive, "_leave", killed)
        with pytest.raises(OSError, match="killed"):
            await app.events.archive(NOON + 40 * DAY)
    assert len(in_folder(tmp_path)) == 1
    await app.events.erase(S1)
    assert in_folder(tmp_path) == []
    assert await archive.files(app, "writing") == []


async def test_a_live_archiver_leaves_nothing_of_what_was_erased_meanwhile(
    app: Penstock, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(app)
    write = archive.write_file
    erased: list[int] = []

    async def late(*given: Any) -> Any:
        if not erased:
            erased.append(1)
            await app.events.erase(S1)  # it is over before the file is there
        return await write(*given)

    monkeypatch.setattr(archive, "write_file", late)
    [made] = await app.events.archive(NOON + 40 * DAY)
    assert (made.rows, made.erased) == (3, 2)
    assert in_folder(tmp_path) == [made.file]
    assert await archive.files(app, "going") == []


def in_folder(tmp_path: Path) -> list[str]:
    """The files of the archive, whether it knows them or not."""
    return [path.name for path in (tmp_path / "archive").rglob("*") if path.is_file()]


async def test_two_archivers_at_once_archive_each_event_once(
    request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path
) -> None:
    async with (
        events_app("postgres", request, clock, tmp_path) as one,
        Penstock(settings=one.settings, extensions=[tally_extension], clock=clock) as other,
    ):
        for month in range(2):
            for n in range(40):
                at = NOON + month * 31 * DAY + n
                await one.events.append(an_event(f"s{n}", event_id=f"{month}-{n}", timestamp=at))
        await one.events.append(an_event("last", event_id="last", timestamp=APRIL))
        both = (one.events.archive(APRIL), other.events.archive(APRIL), one.events.archive(APRIL))
        made = [each for files in await asyncio.gather(*both) for each in files]
        found = [
            row["event_id"]
            for path in await archive.paths(one)
            for row in pq.read_table(path).to_pylist()
        ]
        assert sorted(found) == sorted(f"{month}-{n}" for month in range(2) for n in range(40))
        assert sorted(in_folder(tmp_path)) == sorted(each.file for each in made)
        assert await ids(one) == ["last"]


def test_a_new_folder_is_on_disk_before_anything_is_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[Path] = []
    monkeypatch.setattr(parquet, "_sync_folder", synced.append)
    path = tmp_path / "archive" / "2026" / "2026-01-x.parquet"
    parquet.write(path, parquet.table_of([]))
    assert synced == [tmp_path, tmp_path / "archive", tmp_path / "archive" / "2026"]


async def test_an_event_that_comes_again_from_an_archived_month_is_known(app: Penstock) -> None:
    await fill(app)
    await app.events.archive(APRIL)
    again = await app.events.append(an_event("s1", event_id="0-0", timestamp=NOON))
    assert (again.created, again.sequence) == (False, 1)
    with pytest.raises(InvalidEvent, match="another content"):
        await app.events.append(an_event("s1", 99, event_id="0-0", timestamp=NOON))
    late = await app.events.append_many(
        [
            an_event("s1", event_id="0-0", timestamp=NOON),
            an_event("s1", event_id="late", timestamp=NOON + 1),
        ]
    )
    assert [each.created for each in late] == [False, True]
    assert late[1].sequence > 9


async def test_a_rebuild_derives_from_archived_events_too(app: Penstock, tally: Tally) -> None:
    await fill(app)
    await catch_up(app)
    expected = await totals(app)
    await app.events.archive(APRIL)
    assert await rebuild(app, app.consumer.get("tally")) == 4
    assert await totals(app) == expected


async def test_a_replay_reads_again_what_was_written_anew_meanwhile(
    app: Penstock, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(app)
    await catch_up(app)
    await app.events.archive(APRIL)
    paths = archive.paths
    told: list[list[Path]] = []

    async def outdated(app: Penstock) -> list[Path]:
        told.append(await paths(app))
        if len(told) == 1:
            with monkeypatch.context() as patched:
                patched.setattr(archive, "paths", paths)
                await app.events.erase(Session("", "shop", "s2"))
        return told[-1]

    monkeypatch.setattr(archive, "paths", outdated)
    await rebuild(app, app.consumer.get("tally"), S1)
    assert (await totals(app))["/shop/s1"][0] == 6


async def test_nothing_is_archived_before_consumers_have_come_past_it(
    app: Penstock, tally: Tally
) -> None:
    await fill(app)
    await catch_up(app)
    await app.events.append(an_event("s1", event_id="late", timestamp=NOON))
    await app.events.append("last")
    with pytest.raises(NotConsumed, match="'tally'"):
        await app.events.archive(NOON + 40 * DAY)


async def test_an_erased_session_is_erased_in_the_archive_and_stays_so(
    app: Penstock, tally: Tally, tmp_path: Path
) -> None:
    secret = "zebra crossing at dawn"
    for month in range(2):
        at = NOON + month * 31 * DAY
        for session in ("s1", "s2"):
            told = {"amount": 1, "text": secret if session == "s1" else "harmless"}
            event_id = f"{session}-{month}"
            await app.events.append(
                an_event(session, event_id=event_id, timestamp=at, payload=told)
            )
    await app.events.append("last")
    await catch_up(app)
    await app.events.archive(APRIL)
    folder = tmp_path / "archive"
    before = {path.name for path in folder.rglob("*.parquet")}
    assert (await app.events.erase(S1)).parts == {"archived events": 2, "sessions": 1}
    files = list(folder.rglob("*.parquet"))
    assert len(files) == 2
    assert not before & {path.name for path in files}
    assert not any(secret in str(pq.read_table(path).to_pylist()) for path in files)
    assert "/shop/s1" not in await totals(app)
    await rebuild(app, app.consumer.get("tally"))
    assert "/shop/s1" not in await totals(app)
    assert (await totals(app))["/shop/s2"][0] == 2
    again = an_event("s1", event_id="s1-0", timestamp=NOON, payload={"text": secret})
    assert not (await app.events.append(again)).created
    assert (await app.events.erase(S1)).parts == {}


async def test_files_of_broken_attempts_are_swept_up(
    app: Penstock, clock: FakeClock, tmp_path: Path
) -> None:
    name = "2026-01-broken.parquet"
    path = tmp_path / "archive" / "2026" / name
    path.parent.mkdir(parents=True)
    path.write_text("half")
    now = clock.now()
    await app.transact(lambda tx: tx.events.queries.run("begin_archive", (name, "events", now)))
    await archive.sweep(app)
    assert path.exists()
    clock.advance(seconds=3_601)
    await archive.sweep(app)
    assert not path.exists()
    assert await archive.files(app, "going") == []


async def test_a_file_that_is_missing_is_named_and_holds_late_events_back(
    app: Penstock, tmp_path: Path
) -> None:
    await fill(app)
    [made, *_] = await app.events.archive(APRIL)
    (tmp_path / "archive" / "2026" / made.file).unlink()
    with pytest.raises(StoreUnavailable, match=made.file):
        await app.events.append(an_event("s1", event_id="new", timestamp=NOON))
    assert (await app.events.append(an_event("s1", timestamp=APRIL))).created


async def test_a_host_that_cannot_read_the_archive_holds_late_events_back(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(app)
    await app.events.archive(APRIL)

    def missing() -> None:
        raise MissingExtra("archive", "pyarrow")

    monkeypatch.setattr(parquet, "arrow", missing)
    with pytest.raises(StoreUnavailable, match="pyarrow"):
        await app.events.append(an_event("s1", event_id="new", timestamp=NOON))


async def test_files_are_read_before_the_log_is_held_and_again_if_they_changed(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(app)
    await app.events.archive(APRIL)
    read = parquet.read
    reads: list[str] = []

    def looking(path: Path, *given: Any) -> Any:
        reads.append(path.name)
        if len(reads) == 1:  # another event is appended, and a session is erased, meanwhile
            asked = asyncio.run_coroutine_threadsafe(meanwhile(), loop)
            asked.result(20)
        return read(path, *given)

    async def meanwhile() -> None:
        await app.events.append("meanwhile")
        await app.events.erase(S1)

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(parquet, "read", looking)
    again = await app.events.append(an_event("s1", event_id="0-0", timestamp=NOON))
    assert (again.created, again.sequence) == (False, 1)
    assert len(set(reads)) == 2


async def test_a_late_event_of_a_unit_of_work_has_files_read_while_others_write(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(app)
    await app.events.archive(APRIL)
    read = parquet.read
    runs: list[int] = []

    def looking(path: Path, *given: Any) -> Any:
        asked = asyncio.run_coroutine_threadsafe(app.events.append("meanwhile"), loop)
        assert asked.result(20).created
        return read(path, *given)

    def work(tx: Any) -> list[Appended]:
        runs.append(1)
        return [
            tx.events.append(an_event("s1", event_id="0-0", timestamp=NOON)),
            tx.events.append(an_event("s1", event_id="late", timestamp=NOON + 1)),
        ]

    loop = asyncio.get_running_loop()
    monkeypatch.setattr(parquet, "read", looking)
    assert [each.created for each in await app.transact(work)] == [False, True]
    assert len(runs) == 3


async def test_late_events_that_are_others_in_every_run_are_looked_for_in_the_commit(
    app: Penstock,
) -> None:
    await fill(app)
    await app.events.archive(APRIL)
    runs: list[int] = []

    def work(tx: Any) -> Appended:
        runs.append(1)
        appended: Appended = tx.events.append(an_event("s1", timestamp=NOON))
        return appended

    assert (await app.transact(work)).created
    assert len(runs) == 1 + MOST_LOOKS


async def test_months_are_archived_by_themselves_only_if_told_to(
    request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path
) -> None:
    async with events_app("sqlite", request, clock, tmp_path) as app:
        await fill(app)
        await archive.keep_up(app)
        assert len(await ids(app)) == 9
        with pytest.raises(InvalidOption, match="archive_days"):
            await app.events.archive()
    async with events_app("sqlite", request, clock, tmp_path, archive_days=30) as app:
        await archive.keep_up(app)
        assert len(await ids(app)) == 3


async def test_without_a_folder_nothing_is_archived(
    request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path
) -> None:
    async with events_app("sqlite", request, clock, tmp_path, archive="") as app:
        await fill(app)
        with pytest.raises(NoArchive, match="has no folder"):
            await app.events.archive(APRIL)
