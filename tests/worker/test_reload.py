"""A process ends when the application's code changes, and is replaced."""

import importlib
import json
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from penstock.model.errors import InvalidOption
from penstock.model.store_errors import StoreUnavailable
from penstock.worker import process, reload
from penstock.worker.process import WorkerSpec
from penstock.worker.reload import FileWatch, loaded_files, wait_for_repair
from penstock.worker.respawn import BAD_SPEC, REPLACE_ME, WORTH_ANOTHER_TRY
from penstock.worker.target import load_app


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A module of an application that is loaded."""
    file = tmp_path / "reloaded_shop.py"
    file.write_text("one = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("reloaded_shop")
    yield file
    del sys.modules["reloaded_shop"]


def touch(file: Path) -> None:
    """Write a file anew, a second later than it was."""
    written = file.stat().st_mtime_ns + 1_000_000_000
    os.utime(file, ns=(written, written))


def as_raised(error: BaseException) -> BaseException:
    """The error without the frame of the test that called."""
    assert error.__traceback__ is not None
    return error.with_traceback(error.__traceback__.tb_next)


def test_files_of_the_application_are_watched_and_neither_ours_nor_those_of_libraries(
    module: Path,
) -> None:
    found = set(loaded_files())
    assert str(module) in found
    assert not [file for file in found if "/site-packages/" in file or "/src/penstock/" in file]
    assert os.__file__ not in found


def test_a_file_that_is_written_or_removed_is_a_change(module: Path) -> None:
    watch = FileWatch()
    assert watch.changed() is None
    touch(module)
    assert watch.changed() == str(module)
    watch = FileWatch()
    assert watch.changed() is None
    module.unlink()
    assert watch.changed() == str(module)


async def test_a_change_is_waited_for(module: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reload, "LOOK_SECONDS", 0)
    watch = FileWatch()
    touch(module)
    assert await watch.change() == str(module)


def test_code_that_cannot_be_loaded_is_shown_and_its_repair_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "broken_shop.py"
    file.write_text("def half(:\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SyntaxError) as broken:
        importlib.import_module("broken_shop")
    monkeypatch.setattr(reload, "STARTED_NS", 2**63)
    looks: list[None] = []
    monkeypatch.setattr("time.sleep", lambda _: looks.append(touch(file)))
    assert wait_for_repair(as_raised(broken.value), "broken_shop:app", None) == REPLACE_ME
    assert len(looks) == 1
    shown = capsys.readouterr().err
    assert "SyntaxError" in shown
    assert "importlib" not in shown
    assert "broken_shop:app cannot be loaded; waiting for a change" in shown


def test_code_that_cannot_be_loaded_is_shown_from_its_own_first_frame_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "outer_shop.py").write_text("import inner_shop\n")
    inner = "from penstock import Penstock\nPenstock().job(qeue='mail')(print)\n"
    (tmp_path / "inner_shop.py").write_text(inner)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(InvalidOption, match="qeue") as broken:
        load_app("outer_shop:app")
    wait_for_repair(as_raised(broken.value), "outer_shop:app", -1)
    first, second, *rest = capsys.readouterr().err.splitlines()
    assert first == "Traceback (most recent call last):"
    assert 'outer_shop.py", line 1' in second
    assert any('inner_shop.py", line 2' in line for line in rest)
    assert any(re.fullmatch("  … . frames? of penstock", line) for line in rest)


def test_a_module_that_is_not_there_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InvalidOption) as missing:
        load_app("no_such_shop:app")
    wait_for_repair(as_raised(missing.value), "no_such_shop:app", -1)
    sentence, waiting = capsys.readouterr().err.splitlines()
    assert sentence.startswith("penstock: Option 'app' is 'no_such_shop:app'")
    assert "waiting for a change" in waiting


@pytest.mark.parametrize(
    ("error", "reloads", "code"),
    [
        (SyntaxError("half"), True, REPLACE_ME),
        (InvalidOption("app", "x", "y"), True, REPLACE_ME),
        (InvalidOption("app", "x", "y"), False, BAD_SPEC),
        (StoreUnavailable("redis://x", "gone"), True, WORTH_ANOTHER_TRY),
    ],
)
def test_a_worker_waits_for_the_repair_of_its_code_and_of_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: Exception,
    reloads: bool,
    code: int,
) -> None:
    def fail(_: WorkerSpec) -> int:
        raise error

    ended: list[int] = []
    monkeypatch.setattr(
        process, "spec_text", lambda: json.dumps({"target": "x", "reload": reloads})
    )
    monkeypatch.setattr(process, "run", fail)
    monkeypatch.setattr(process, "wait_for_repair", lambda *_: REPLACE_ME)
    monkeypatch.setattr("os._exit", ended.append)
    process.main()
    assert ended == [code]
    waits = code == REPLACE_ME  # and then the wait shows the error
    assert ("penstock: " in capsys.readouterr().err) is not waits


def test_nobody_waits_for_a_repair_whose_parent_is_gone(
    module: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("time.sleep", lambda _: pytest.fail("it waited"))
    assert wait_for_repair(ValueError("no"), "reloaded_shop:app", os.getppid() + 1) == REPLACE_ME


def test_no_secret_is_shown_of_an_application_that_cannot_be_loaded(
    module: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wait_for_repair(ValueError("password=hunter2-and-more"), "reloaded_shop:app", -1)
    assert "hunter2" not in capsys.readouterr().err


def test_a_file_written_while_the_process_started_is_a_change(module: Path) -> None:
    written = module.stat().st_mtime_ns
    assert FileWatch(since=written).changed() is None
    assert FileWatch(since=written - 1).changed() == str(module)


def test_a_file_of_the_future_is_no_change(module: Path) -> None:
    ahead = time.time_ns() + 3600 * 1_000_000_000
    os.utime(module, ns=(ahead, ahead))
    assert FileWatch(since=ahead - 1).changed() is None


@pytest.mark.parametrize("made", ["missing_part.py", "missing_part/"])
def test_a_repair_may_be_a_new_file(
    module: Path, monkeypatch: pytest.MonkeyPatch, made: str
) -> None:
    monkeypatch.setattr(reload, "STARTED_NS", 2**63)
    module.write_text("import missing_part\n")
    with pytest.raises(ModuleNotFoundError) as broken:
        importlib.reload(sys.modules["reloaded_shop"])
    looks: list[str] = []

    def make(_: float) -> None:
        looks.append("look")
        if len(looks) == 1:
            (module.parent / "jobs.db").touch()
        elif made.endswith("/"):
            (module.parent / made).mkdir()
        else:
            (module.parent / made).touch()

    monkeypatch.setattr("time.sleep", make)
    assert wait_for_repair(broken.value, "reloaded_shop:app", None) == REPLACE_ME
    assert len(looks) == 2
