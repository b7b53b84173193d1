import asyncio
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from penstock import Penstock, Settings
from penstock.cli.session import actor

from .conftest import ENVIRONMENT, Cli


@pytest.fixture
def urls(shopped: Cli, tmp_path: Path) -> tuple[str, str]:
    """A store in which a worker has been, and one that is not there yet."""
    return f"sqlite:///{tmp_path / 'work.db'}", f"sqlite:///{tmp_path / 'new.db'}"


def test_a_store_is_moved_and_the_old_one_names_the_new(
    shopped: Cli, urls: tuple[str, str]
) -> None:
    jobs = shopped("jobs", "ls", "--json").json
    answer = shopped("move", *urls, "--force")
    assert answer.code == 0
    assert re.search(r"Moved 6 jobs and \d+ other records, verified\.\n  to .*new.db\n", answer.out)
    assert shopped("jobs", "ls", "--json", "--url", urls[1]).json == jobs
    refused = shopped("jobs", "ls")
    assert refused.code == 2
    assert refused.says("was moved to", "new.db")


def test_what_was_moved_is_told_as_json(shopped: Cli, urls: tuple[str, str]) -> None:
    told = shopped("move", *urls, "--force", "--json").json
    assert told["parts"]["jobs"] == sum(told["statuses"].values()) == 6
    assert told["sent"] == sum(told["parts"].values())
    assert (told["resumed"], told["kept"], told["files"]) == (False, False, {})


def test_files_that_did_not_move_with_the_rows_about_them_are_told(
    shopped: Cli, urls: tuple[str, str], tmp_path: Path
) -> None:
    settings = Settings(url=urls[0], extension={"events": {"archive": str(tmp_path / "files")}})

    async def archive() -> None:
        async with Penstock(settings=settings, extensions=["events"]) as app:
            await app.events.append("old", timestamp="2020-01-01T00:00:00Z")
            await app.events.append("new")
            await app.events.archive(before=app.store.clock.now())

    asyncio.run(archive())
    answer = shopped("move", *urls, "--force", "--keep")
    assert "1 file of the archive (events.archive) did not move" in answer.out


def test_a_kept_store_can_still_be_used(shopped: Cli, urls: tuple[str, str]) -> None:
    assert "stays in use" in shopped("move", *urls, "--force", "--keep").out
    assert len(shopped("jobs", "ls", "--json").json) == 6
    assert len(shopped("jobs", "ls", "--json", "--url", urls[1]).json) == 6


def test_a_move_back_replaces_what_was_left_behind(shopped: Cli, urls: tuple[str, str]) -> None:
    shopped("move", *urls, "--force")
    back = urls[::-1]
    refused = shopped("move", *back)
    assert refused.code == 2
    assert refused.says("already holds 6 jobs", "--replace")
    assert shopped("move", *back, "--replace").code == 0
    assert len(shopped("jobs", "ls", "--json").json) == 6


def test_a_store_in_use_is_no_target(shopped: Cli, urls: tuple[str, str], tmp_path: Path) -> None:
    shutil.copy(tmp_path / "work.db", tmp_path / "new.db")
    answer = shopped("move", *urls, "--force", "--replace")
    assert answer.code == 2
    assert answer.says("already holds 6 jobs", "name an empty one")


def test_a_store_is_no_target_of_itself(shopped: Cli, urls: tuple[str, str]) -> None:
    answer = shopped("move", urls[0], urls[0])
    assert answer.code == 2
    assert answer.says("Both URLs lead to the store")


def test_a_store_that_is_not_there_is_not_made(cli: Cli, tmp_path: Path) -> None:
    names = ("none.db", "new.db")
    answer = cli("move", *(f"sqlite:///{tmp_path / name}" for name in names))
    assert answer.code == 2
    assert answer.says("none.db does not exist")
    assert not any((tmp_path / name).exists() for name in names)


def test_a_move_that_never_began_cannot_be_given_up(shopped: Cli, urls: tuple[str, str]) -> None:
    answer = shopped("move", *urls, "--abandon")
    assert answer.code == 2
    assert answer.says("No move from", "is under way")


STOPPED = """
import os, signal, sys
import penstock.cli.move as move
from penstock.cli.program import main

def show(what, done, of):
    if what == "executions":
        os.kill(os.getpid(), signal.{signal})

class Bars:
    def __enter__(self):
        return show
    def __exit__(self, *_):
        pass

move.progress_bars = Bars
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
main()
"""


def stopped_by(name: str, urls: tuple[str, str]) -> "subprocess.CompletedProcess[str]":
    """A move that gets a signal when its jobs are there, and the rest is not."""
    command = [sys.executable, "-c", STOPPED.replace("{signal}", name), "move", *urls, "--force"]
    return subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=60)


def test_ctrl_c_is_one_sentence_and_the_next_run_goes_on(
    shopped: Cli, urls: tuple[str, str]
) -> None:
    stopped = stopped_by("SIGINT", urls)
    assert stopped.returncode == 130
    sentence = "penstock: interrupted; run the same command again and it goes on.\n"
    assert stopped.stderr == sentence
    assert shopped("jobs", "ls").says("is being moved to", "--abandon")
    told = shopped("move", *urls, "--force", "--json").json
    assert told["resumed"]
    assert told["sent"] <= sum(told["parts"].values()) - 6


def test_a_killed_move_is_given_up(shopped: Cli, urls: tuple[str, str]) -> None:
    assert stopped_by("SIGKILL", urls).returncode == -9
    assert "can be used again" in shopped("move", *urls, "--abandon").out
    assert len(shopped("jobs", "ls", "--json").json) == 6
    assert shopped("jobs", "ls", "--json", "--url", urls[1]).json == []


def test_a_store_whose_successor_is_lost_is_opened_again(
    shopped: Cli, urls: tuple[str, str], tmp_path: Path
) -> None:
    shopped("move", *urls, "--force")
    still = shopped("reopen", urls[0], "--yes")
    assert still.code == 2
    assert still.says("which is there and holds 6 jobs", "--replace", "--force")
    (tmp_path / "new.db").unlink()
    asked = shopped("reopen", urls[0])
    assert asked.code == 2
    assert asked.says("holds 6 jobs", "is not there any more", "done again", "--yes")
    assert shopped("jobs", "ls").says("was moved to")
    assert "can be used again" in shopped("reopen", urls[0], "--yes").out
    assert len(shopped("jobs", "ls", "--json").json) == 6
    assert shopped("reopen", urls[0], "--yes").says("was not moved away")
    [entry] = shopped("audit", "ls", "--json").json
    assert (entry["actor"], entry["action"], entry["subject"]) == (actor(), "store.reopen", "store")
    assert entry["details"] == {
        "moved_to": urls[1],
        "finding": "is not there any more",
        "force": False,
    }
    assert not (tmp_path / "new.db").exists()


def test_a_store_that_was_moved_away_can_be_copied_and_the_copy_is_in_use(
    shopped: Cli, urls: tuple[str, str], tmp_path: Path
) -> None:
    shopped("move", *urls, "--force")
    assert shopped("backup", "copy.db", "--json").json["jobs"] == 6
    other = f"sqlite:///{tmp_path / 'other.db'}"
    assert shopped("restore", "copy.db", "--url", other).code == 0
    assert len(shopped("jobs", "ls", "--json", "--url", other).json) == 6


def test_a_move_that_is_given_up_takes_the_rows_of_extensions_back(
    cli: Cli, tmp_path: Path, valkey_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PENSTOCK_EXTENSIONS", "examples.links:extension")
    cli("links", "add", "http://127.0.0.1:1/")
    words = ("move", f"sqlite:///{tmp_path / 'work.db'}", valkey_url)
    tables = ("--tables-to", f"sqlite:///{tmp_path / 'tables.db'}")

    @contextmanager
    def stopped() -> Iterator[Callable[[str, int, int], None]]:
        def show(part: str, done: int, _: int) -> None:
            if part == "links_links" and done:
                raise KeyboardInterrupt

        yield show

    with monkeypatch.context() as patch:
        patch.setattr("penstock.cli.move.progress_bars", stopped)
        assert cli(*words, *tables).code == 130
    assert cli(*words, "--abandon").says("has no place for the tables of links", "--tables-to")
    assert cli(*words, *tables, "--abandon").code == 0
    assert "1 row of extensions" in cli(*words, *tables).out
