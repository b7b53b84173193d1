"""The folder of the agent workers: beside the file, or named, and never half a file in it."""

import stat
from pathlib import Path
from typing import IO

import pytest

from penstock import Penstock
from penstock.apps.agents.files import NoFolder, find_folder, folder_of, write_file
from penstock.config import Settings


def app_at(url: str, folder: str = "", tables: str | None = None) -> Penstock:
    settings = Settings(extension={"agents": {"folder": folder, "schedules": False}})
    return Penstock(url, extensions=["agents"], settings=settings, tables=tables)


def test_it_is_beside_the_file_unless_it_is_named() -> None:
    assert folder_of(app_at("sqlite:////data/work.db")) == Path("/data/work.agents")
    assert folder_of(app_at("sqlite:////data/work.db", "/else")) == Path("/else")
    beside = app_at("redis://localhost", tables="sqlite:////data/tables.db")
    assert folder_of(beside) == Path("/data/tables.agents")


@pytest.mark.parametrize("url", ["postgresql://ada:secret@db/work", "sqlite:///:memory:"])
def test_where_there_is_no_place_beside_it_one_sentence_says_what_to_do(url: str) -> None:
    assert find_folder(app_at(url)) is None
    with pytest.raises(NoFolder, match=r"name one: folder = .* under \[penstock.agents\]") as found:
        folder_of(app_at(url))
    assert "secret" not in str(found.value)


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "new" / "file"
    write_file(path, lambda file: file.write(b"first"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700

    def fails(file: IO[bytes]) -> None:
        file.write(b"second")
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_file(path, fails)
    assert path.read_bytes() == b"first"
    assert [each.name for each in path.parent.iterdir()] == ["file"]
