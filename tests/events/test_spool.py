"""The spool: what is appended while the stream or the store is away, kept in its order."""

import asyncio
import errno
import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from penstock import Penstock, Settings
from penstock.events import spool as module
from penstock.events.event import InvalidEvent, NewEvent
from penstock.events.spool import HEADER, MAGIC, Intake, Spool
from penstock.model.store_errors import StoreFull, StoreUnavailable
from proof.servers import RedisServer
from tests.events.streams import (
    AT,
    Others,
    drain,
    events_of,
    fast_path,
    intake_of,
    letters_of,
    streaming,
    until,
)
from tests.support.places import Place


def event(n: int) -> NewEvent:
    return NewEvent(event_id=f"e{n}", timestamp=AT + n, event_type="trace", payload={"n": n})


@pytest.fixture
def spool(tmp_path: Path) -> Spool:
    return Spool(tmp_path / "spool")


def held(spool: Spool) -> list[str]:
    """What it holds, as who flushes it sees it."""
    if not spool.take():
        return []
    return [each.event_id for chunk in spool.events() for each in chunk]


class Target:
    """Takes events, or is away."""

    def __init__(self) -> None:
        self.away = False
        self.calls = 0
        self.refuses = ""
        self.taken: list[str] = []
        self.refused: list[str] = []

    async def take(self, events: Any) -> list[str]:
        self.calls += 1
        if self.away:
            raise StoreUnavailable("redis://x", "it is away")
        if any(each.event_id == self.refuses for each in events):
            raise InvalidEvent(self.refuses, "is refused")
        self.taken += [each.event_id for each in events]
        return [each.event_id for each in events]

    async def refuse(self, event: NewEvent, error: InvalidEvent) -> None:
        self.refused.append(event.event_id)


@pytest.fixture
def target() -> Target:
    return Target()


@pytest.fixture
def intake(spool: Spool, target: Target) -> Intake[str]:
    return Intake(spool, target.take, target.refuse)


def test_what_is_spooled_is_read_in_its_order_by_its_owner_alone(spool: Spool) -> None:
    for n in range(250):
        spool.append([event(n)])
    assert spool.path.stat().st_mode & 0o777 == 0o600
    assert held(spool) == [f"e{n}" for n in range(250)]


def test_it_is_on_disk_before_the_caller_goes_on(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[int] = []
    fsync = os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda file: (synced.append(os.fstat(file).st_size), fsync(file))
    )
    spool.append([event(1)])
    assert synced[0] == spool.path.stat().st_size
    assert len(synced) == 2  # the folder, too, which has a new name


@pytest.mark.parametrize("lost", [1, HEADER.size - 1, HEADER.size, HEADER.size + 3])
def test_a_torn_frame_costs_nothing_of_what_stands_around_it(lost: int, spool: Spool) -> None:
    spool.append([event(1)])
    size = spool.path.stat().st_size
    spool.append([event(2)])
    os.truncate(spool.path, spool.path.stat().st_size - lost)
    spool.append([event(3)])
    assert spool.path.stat().st_size > size
    assert held(spool) == ["e1", "e3"]


def test_a_frame_with_a_wrong_checksum_is_left_out(spool: Spool) -> None:
    spool.append([event(1), event(2)])
    data = bytearray(spool.path.read_bytes())
    data[HEADER.size + 2] ^= 1
    spool.path.write_bytes(data)
    assert held(spool) == ["e2"]


@pytest.mark.parametrize(
    ("code", "error"), [(errno.ENOSPC, StoreFull), (errno.EIO, StoreUnavailable)]
)
def test_what_the_disk_does_not_take_is_refused_and_leaves_no_piece(
    code: int, error: type[Exception], spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool.append([event(1)])
    write = os.write

    def failing(file: int, data: Any) -> int:
        if len(data) < 60:
            raise OSError(code, os.strerror(code))
        return write(file, bytes(data)[:50])

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", failing)
        size = spool.path.stat().st_size
        with pytest.raises(error):
            spool.append([event(2)])
        assert spool.path.stat().st_size == size
    spool.append([event(3)])
    assert held(spool) == ["e1", "e3"]


def test_nothing_is_acknowledged_when_the_disk_does_not_sync(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(file: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(StoreUnavailable):
        spool.append([event(1)])


def test_an_event_that_meets_a_flush_is_in_the_next_file(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool.append([event(1)])
    flock = fcntl.flock

    def late(file: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        assert held(spool) == ["e1"]
        spool.forget()
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    spool.append([event(2)])
    assert held(spool) == ["e2"]


def test_many_processes_share_it_and_flushing_loses_none(spool: Spool) -> None:
    script = (
        "import sys; from pathlib import Path\n"
        "from penstock.events.event import NewEvent; from penstock.events.spool import Spool\n"
        "spool, first = Spool(Path(sys.argv[1])), int(sys.argv[2])\n"
        "for n in range(first, first + 100):\n"
        "    spool.append([NewEvent(event_id=f'e{n}', timestamp=n, event_type='trace')])"
    )
    writers = [
        subprocess.Popen([sys.executable, "-c", script, str(spool.path), str(1_000 * n)])
        for n in range(2)
    ]
    seen: list[str] = []
    while any(writer.poll() is None for writer in writers) or spool.holds_any:
        if spool.take():
            seen += held(spool)
            spool.forget()
        else:
            time.sleep(0.002)
    assert [writer.returncode for writer in writers] == [0, 0]
    for first in (0, 1_000):
        own = [each for each in seen if first <= int(each[1:]) < first + 100]
        assert own == [f"e{n}" for n in range(first, first + 100)]


SERVER = "redis://u:secret@cache:6379/0"


@pytest.mark.parametrize(
    ("stores", "expected"),
    [
        (("sqlite:////srv/shop.db", ""), "/srv/shop.db.spool"),
        (("sqlite:///shop.db", ""), "{here}/shop.db.spool"),
        (("redis://x", "sqlite:////srv/tables.db"), "/srv/tables.db.spool"),
    ],
)
def test_its_usual_place_is_beside_the_file_of_a_sqlite_store(
    stores: tuple[str, ...], expected: str
) -> None:
    place = module.usual_place(stores, SERVER)
    assert str(place) == expected.format(here=Path.cwd())


def test_else_it_is_in_the_users_state_folder_and_the_same_for_who_asks_as_somebody_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    stores = ("postgresql://db/shop", "")
    place = module.usual_place(stores, SERVER)
    assert place.parent == tmp_path / "state" / "penstock"
    assert place == module.usual_place(("sqlite:///:memory:",), "redis://cache:6379/0")
    assert place != module.usual_place(stores, "redis://cache:6379/1")
    spool = Spool(place)
    spool.append([event(1)])
    assert [path.stat().st_mode & 0o777 for path in (place, place.parent)] == [0o600, 0o700]
    monkeypatch.setenv("HOME", str(tmp_path))
    for nowhere in ("", "here"):
        monkeypatch.setenv("XDG_STATE_HOME", nowhere)
        assert module.usual_place(stores, SERVER).parent == tmp_path / ".local/state/penstock"


async def test_a_program_elsewhere_spools_where_ingest_looks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Settings(url=f"sqlite:///{tmp_path}/shop.db", extension={"events": {"stream": SERVER}})
    places = []
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        monkeypatch.chdir(tmp_path / folder)
        places.append(intake_of(Penstock(settings=told)).spool.path)
    assert places == [tmp_path / "shop.db.spool"] * 2


async def test_while_the_target_is_away_events_wait_and_are_handed_on_in_order(
    intake: Intake[str], target: Target, spool: Spool
) -> None:
    assert await intake.accept([event(0)]) == ["e0"]
    target.away = True
    assert await intake.accept([event(1), event(2)]) is None
    target.away = False
    assert await intake.accept([event(3)]) is None  # behind the others
    assert target.taken == ["e0"]
    assert await intake.flush()
    assert await intake.accept([event(4)]) == ["e4"]
    assert target.taken == ["e0", "e1", "e2", "e3", "e4"]
    assert not spool.holds_any
    await intake.close()


async def test_it_is_flushed_by_itself_once_the_target_is_back(
    intake: Intake[str], target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE", 0.001)
    monkeypatch.setattr(module, "LONGEST_PAUSE", 0.001)
    target.away = True
    await intake.accept([event(1)])
    await until(lambda: target.calls > 2)
    assert target.taken == []
    target.away = False
    await until(lambda: target.taken)
    await intake.close()
    assert target.taken == ["e1"]


async def test_a_target_that_does_not_answer_costs_a_caller_a_moment_only(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.001)

    async def silent(events: Any) -> list[str]:
        await asyncio.Event().wait()
        return []

    intake: Intake[str] = Intake(spool, silent, Target().refuse)
    assert await intake.accept([event(1)]) is None
    await intake.close()
    assert held(spool) == ["e1"]


async def test_a_flush_that_is_cut_short_begins_again(
    intake: Intake[str], target: Target, spool: Spool
) -> None:
    for n in range(150):
        spool.append([event(n)])
    take = target.take

    async def once(events: Any) -> list[str]:
        if target.taken:
            raise StoreUnavailable("redis://x", "it went away")
        return await take(events)

    intake._deliver = once
    with pytest.raises(StoreUnavailable):
        await intake.flush()
    spool.append([event(150)])
    intake._deliver = take
    assert await intake.flush()
    assert target.taken[100:] == [f"e{n}" for n in range(151)]


async def test_what_the_target_refuses_does_not_hold_up_the_rest(
    intake: Intake[str], target: Target, spool: Spool
) -> None:
    spool.append([event(1), event(2), event(3)])
    target.refuses = "e2"
    assert await intake.flush()
    assert (target.taken, target.refused) == (["e1", "e3"], ["e2"])


def test_erased_events_are_overwritten(spool: Spool) -> None:
    spool.append([event(n) for n in range(5)])
    spool.take()
    spool.append([event(n) for n in range(5, 9)])
    assert spool.erase(lambda each: each.event_id in ("e1", "e7")) == 2
    assert b'"e1"' not in spool.flushing.read_bytes()
    assert b'"e7"' not in spool.path.read_bytes()
    assert held(spool) == ["e0", "e2", "e3", "e4"]
    spool.forget()
    assert held(spool) == ["e5", "e6", "e8"]


def test_until_what_stays_is_on_disk_beside_it_an_erasure_leaves_the_file_as_it_is(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool.append([event(1), event(2)])
    before = spool.path.read_bytes()
    done: list[str] = []
    fsync, rename = os.fsync, Path.rename

    def synced(file: int) -> None:
        done.append("sync" if spool.path.read_bytes() == before else "sync after")
        fsync(file)

    def renamed(file: Path, to: Path) -> Path:
        assert file.stat().st_mode & 0o777 == 0o600
        done.append("rename")
        return rename(file, to)

    monkeypatch.setattr(os, "fsync", synced)
    monkeypatch.setattr(Path, "rename", renamed)
    with spool.path.open("rb") as old:
        assert spool.erase(lambda each: each.event_id == "e1") == 1
        assert done == ["sync", "rename", "sync after", "sync after"]
        assert old.read() == b""
    assert held(spool) == ["e2"]


def test_the_bytes_of_the_old_file_are_overwritten(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "BLOCK", 7)
    spool.append([event(1), event(2)])
    synced: list[bytes] = []
    fsync = os.fsync
    with spool.path.open("rb") as old:
        size = spool.path.stat().st_size
        monkeypatch.setattr(
            os, "fsync", lambda file: (synced.append(os.pread(old.fileno(), 999, 0)), fsync(file))
        )
        spool.erase(lambda each: each.event_id == "e1")
    assert synced[-1] == b"\0" * size


def test_what_is_torn_goes_with_an_erasure_and_what_a_crash_left_of_one(spool: Spool) -> None:
    spool.append([event(1), event(2)])
    os.truncate(spool.path, spool.path.stat().st_size - 1)
    left = spool.path.with_name(spool.path.name + ".anew")
    left.write_bytes(b"left")
    assert spool.erase(lambda each: False) == 0
    assert b'"e2"' not in spool.path.read_bytes()
    assert not left.exists()
    assert held(spool) == ["e1"]


def test_nothing_is_erased_and_that_is_said_without_the_lock(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool.append([event(1)])
    monkeypatch.setattr(spool, "_lock", spool.path / "lock")
    with pytest.raises(StoreUnavailable, match="lock"):
        spool.erase(lambda each: True)
    assert held(spool) == ["e1"]


def test_an_event_that_meets_an_erasure_is_in_the_new_file(
    spool: Spool, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool.append([event(1), event(2)])
    flock = fcntl.flock

    def late(file: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        assert spool.erase(lambda each: each.event_id == "e1") == 1
        flock(file, how)

    monkeypatch.setattr(fcntl, "flock", late)
    spool.append([event(3)])
    assert held(spool) == ["e2", "e3"]


async def test_append_spools_while_redis_is_down_and_nothing_is_lost(
    place: Place, tmp_path: Path
) -> None:
    with RedisServer() as server:
        url = f"{server.url}?namespace=n"
        async with streaming(place, url, tmp_path) as app:
            await app.events.append("trace", session_id="s", payload={"n": 0})
            server.kill()
            for n in range(1, 20):
                await app.events.append("trace", session_id="s", payload={"n": n})
            server.start()
            await until(lambda: not intake_of(app).spool.holds_any)
            await app.events.append("trace", session_id="s", payload={"n": 20})
            async with fast_path(app) as path:
                await drain(path)
            assert [each.payload["n"] for each in await events_of(app)] == list(range(21))
            assert Others(url).length() == 0


async def test_a_spool_without_a_stream_takes_events_while_the_store_is_locked(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with streaming(place, None, tmp_path) as app:
        assert (await app.events.append(event(0))).sequence == 1
        write: Callable[..., Any] = app.events.write

        async def locked(rows: Any) -> Any:
            raise StoreUnavailable("sqlite:///x", "it is locked")

        monkeypatch.setattr(app.events, "write", locked)
        assert (await app.events.append(event(1))).sequence == 0
        another = NewEvent(event_id="e0", timestamp=AT, event_type="trace", payload={"n": "x"})
        assert (await app.events.append(another)).sequence == 0
        monkeypatch.setattr(app.events, "write", write)
        assert await intake_of(app).flush()
        assert [each.event_id for each in await events_of(app)] == ["e0", "e1"]
        [letter] = await letters_of(app)
        assert "with another content" in letter["reason"]


def test_a_frame_that_holds_no_event_is_told_and_costs_no_other(
    spool: Spool, capsys: pytest.CaptureFixture[str]
) -> None:
    spool.append([event(1)])
    body = b'{"event_type": 5}'
    with spool.path.open("ab") as file:
        file.write(HEADER.pack(MAGIC, len(body), crc32(body)) + body)
    spool.append([event(2)])
    assert held(spool) == ["e1", "e2"]
    assert "spool_unreadable" in capsys.readouterr().out
