"""A session knows its commits: what was committed in its repository while it went on."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.apps.recorder import git
from penstock.apps.recorder.capture import capture, repository
from penstock.apps.recorder.captured import Captured
from penstock.apps.recorder.git import Head, Look, commits_between, moved
from penstock.apps.recorder.home import real_path
from penstock.apps.recorder.writing import write
from penstock.events import Session, catch_up
from penstock.testing import drain
from tests.support.places import Place


class Repository:
    """A repository with one commit."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.run("init", "-q", "-b", "main")
        self.first = self.commit("cart.py", "Start")

    def run(self, *words: str) -> str:
        """Run git there."""
        who = {"GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@shop.example"}
        who |= {"GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@shop.example"}
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), **who}
        done = subprocess.run(
            ["git", *words], cwd=self.folder, env=env, check=True, capture_output=True, text=True
        )
        return done.stdout.strip()

    def commit(self, file: str, subject: str) -> str:
        """Commit a new file; the hash."""
        (self.folder / file).write_text(subject)
        self.run("add", ".")
        self.run("commit", "-q", "-m", subject)
        return self.run("rev-parse", "HEAD")


@pytest.fixture
def shop(tmp_path: Path) -> Repository:
    folder = tmp_path / "shop"
    folder.mkdir()
    return Repository(folder)


def told(event: str, folder: Path, now: int = 1_000, **more: Any) -> Captured:
    payload = {"session_id": "s1", "hook_event_name": event, "cwd": str(folder), **more}
    return capture("claude_code", "", payload, now, lambda found: (found, ()))


def looking(shop: Repository, after: str, since: int = 0) -> Look:
    session = Session("", "claude_code", "s1")
    return Look(
        session=session,
        folder=str(shop.folder),
        branch="main",
        before=shop.first,
        after=after,
        since=since,
    )


def test_a_repository_is_read_without_starting_git(shop: Repository) -> None:
    inside = shop.folder / "src" / "deep"
    inside.mkdir(parents=True)
    assert repository(str(inside)) == (str(shop.folder), "main", shop.first)
    shop.run("pack-refs", "--all")
    assert repository(str(inside)) == (str(shop.folder), "main", shop.first)
    shop.run("worktree", "add", "-q", "../fix", "-b", "fix/cart")
    fix = shop.folder.parent / "fix"
    assert repository(str(fix)) == (str(fix), "fix/cart", shop.first)
    shop.run("checkout", "-q", "--detach")
    assert repository(str(inside)) == (str(shop.folder), "", shop.first)


def test_without_a_repository_the_folder_is_the_root(tmp_path: Path) -> None:
    assert repository(str(tmp_path)) == (str(tmp_path), "", "")


def test_a_pipe_in_place_of_a_file_keeps_nobody_waiting(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    pipe = tmp_path / ".git" / "HEAD"
    os.mkfifo(pipe)
    assert repository(str(tmp_path)) == (str(tmp_path), "", "")
    told = os.open(pipe, os.O_RDWR)
    os.write(told, b"ref: refs/heads/out-of-a-pipe\n")
    assert repository(str(tmp_path)) == (str(tmp_path), "", "")
    os.close(told)


def test_a_branch_that_leads_out_of_the_repository_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: ../../../etc/hostname\n")
    assert repository(str(tmp_path)) == (str(tmp_path), "", "")


def test_commits_come_in_their_order_with_their_files(shop: Repository) -> None:
    second = shop.commit("stock.py", "Count stock")
    (shop.folder / "a b\nc.txt").write_text("odd")
    third = shop.commit("price.py", "Price \x01 it")
    found = commits_between(str(shop.folder), looking(shop, third))
    assert [(commit.hash, commit.subject, commit.files) for commit in found] == [
        (second, "Count stock", ["stock.py"]),
        (third, "Price \x01 it", ["a b\nc.txt", "price.py"]),
    ]
    assert {commit.branch for commit in found} == {"main"}


def test_what_was_committed_before_the_session_is_not_its_own(shop: Repository) -> None:
    second = shop.commit("stock.py", "Count stock")
    later = 1000 * int(shop.run("log", "-1", "--format=%ct")) + 60_000
    assert commits_between(str(shop.folder), looking(shop, second, since=later)) == []


def test_programs_that_a_repository_names_are_not_run(shop: Repository, tmp_path: Path) -> None:
    signed = shop.run("cat-file", "commit", shop.commit("stock.py", "Count stock"))
    head, _, message = f"{signed}\n".partition("\n\n")
    signature = "gpgsig -----BEGIN PGP SIGNATURE-----\n \n -----END PGP SIGNATURE-----"
    (tmp_path / "signed").write_text(f"{head}\n{signature}\n\n{message}")
    second = shop.run("hash-object", "-t", "commit", "-w", str(tmp_path / "signed"))
    trap = tmp_path / "trap"
    program = tmp_path / "evil.sh"
    program.write_text(f"#!/bin/sh\ntouch {trap}\n")
    program.chmod(0o755)
    for name in ("core.fsmonitor", "core.pager", "gpg.program", "diff.external", "core.editor"):
        shop.run("config", name, str(program))
    shop.run("config", "log.showSignature", "true")
    assert len(commits_between(str(shop.folder), looking(shop, second))) == 1
    assert not trap.exists()


@pytest.mark.parametrize("after", ["--output=/tmp/x", "HEAD", "zz"])
def test_what_is_no_hash_is_never_given_to_git(shop: Repository, after: str) -> None:
    shop.commit("stock.py", "Count stock")
    assert commits_between(str(shop.folder), looking(shop, after)) == []


def test_a_session_moves_when_its_repository_does(shop: Repository) -> None:
    head, look = moved(None, told("SessionStart", shop.folder))
    assert (head, look) == (Head(shop.first, 1_000), None)
    second = shop.commit("stock.py", "Count stock")
    head, look = moved(head, told("Stop", shop.folder, now=2_000))
    assert head == Head(second, 1_000)
    assert look == looking(shop, second, since=1_000)
    assert moved(head, told("Stop", shop.folder, now=3_000)) == (head, None)


@pytest.mark.every_store
async def test_commits_become_events_of_the_session_and_are_listed_with_it(
    shop: Repository, place: Place
) -> None:
    if place.kind == "valkey":
        pytest.skip("it has no tables")
    began = 1000 * int(shop.run("log", "-1", "--format=%ct"))
    app = Penstock(**place.settings, extensions=["events", "recorder"])
    async with app:
        await write(app, [told("SessionStart", shop.folder, began)])
        second = shop.commit("stock.py", "Count stock")
        call = {"tool_use_id": "t1", "tool_name": "Bash", "tool_input": {}}
        await write(app, [told("PostToolUse", shop.folder, began + 1, **call)])
        await catch_up(app, git.NAME)
        await catch_up(app, git.NAME)
        assert (await drain(app)).completed == 1
        await catch_up(app)
        [commit] = [e for e in await app.events.find() if e.event_type == "git_commit"]
        assert commit.payload == {
            "hash": second,
            "branch": "main",
            "files": ["stock.py"],
            "subject": "Count stock",
        }
        assert commit.session_id == "s1"
        [session] = await app.recorder.sessions.of_commit(second[:8])
        assert session.session_id == "s1"


def test_a_path_without_its_user_is_one_of_this_user(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert real_path("/home/[REDACTED_USER]/shop") == "/home/ada/shop"
    assert real_path("/srv/shop") == "/srv/shop"
    assert real_path("~/shop") == "/home/ada/shop"
