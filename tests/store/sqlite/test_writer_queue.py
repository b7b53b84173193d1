"""The line in front of the write lock: nobody slips in, and nobody holds it up for ever."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.store.sqlite import writer as lines
from penstock.store.sqlite.writer import WriterQueue

STAND = """
import fcntl, os, sys
file = os.open(sys.argv[1], os.O_RDWR)
fcntl.lockf(file, fcntl.LOCK_EX, 1, int(sys.argv[2]))
print("there", flush=True)
sys.stdin.readline()
"""
FRONT, SECOND = 0, 1


class Other:
    """A process that stands in the line until it is killed."""

    def __init__(self, wal: Path, place: int) -> None:
        command = [sys.executable, "-c", STAND, str(wal), str(place)]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout
        assert self._process.stdout.readline() == "there\n"

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def wal(tmp_path: Path) -> Path:
    wal = tmp_path / "work.db-wal"
    wal.touch()
    return wal


@pytest.fixture
def line(wal: Path) -> Iterator[WriterQueue]:
    line = WriterQueue(str(wal).removesuffix("-wal"))
    yield line
    line.close()


@pytest.mark.parametrize("place", [FRONT, SECOND])
def test_a_process_that_stands_in_line_is_not_passed(
    wal: Path, line: WriterQueue, place: int
) -> None:
    assert line.is_empty()
    other = Other(wal, place)
    assert not line.is_empty()
    assert not line._try_enter()
    other.kill()


def test_a_process_that_is_killed_leaves_the_line(wal: Path, line: WriterQueue) -> None:
    other = Other(wal, FRONT)
    waiting = lines._Waiting(line._bytes[0])  # type: ignore[index]
    assert not waiting._at_front.acquire(blocking=False)
    other.kill()
    assert waiting.wait(30)
    waiting.end()


def test_nobody_stands_for_long_behind_one_that_does_not_move(
    wal: Path, line: WriterQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    stand = lines._Waiting.wait

    def wait(self: lines._Waiting, seconds: float) -> bool:
        waits.append(seconds)
        return stand(self, 0.01)

    monkeypatch.setattr(lines._Waiting, "wait", wait)
    other = Other(wal, FRONT)
    line.enter()
    line.enter()  # not behind the same one again
    other.kill()
    assert waits == [lines.WAIT_SECONDS]


def test_a_line_that_cannot_be_kept_stops_nobody(tmp_path: Path) -> None:
    line = WriterQueue(str(tmp_path / "missing.db"))
    assert line.is_empty()
    line.enter()
    line.leave()
    line.close()
