"""`penstock recorder …` at the terminal."""

import asyncio
import importlib
import json
import re
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.apps.recorder.demo import BUTTONS
from tests.apps.recorder.sessions import RECORDER, learn, record
from tests.cli.conftest import Cli, cli  # noqa: F401


@pytest.fixture
def session(cli: Cli, tmp_path: Path) -> str:  # noqa: F811
    """A store with two sessions and a learning; the id of the first session."""

    async def made(app: Penstock) -> str:
        found = await record(app)
        await record(app, BUTTONS, "s2")
        await learn(app)
        return found

    return _within(tmp_path, made)


def _within(tmp_path: Path, work: Callable[[Penstock], Awaitable[str]]) -> str:
    async def run() -> str:
        url = f"sqlite:///{tmp_path / 'work.db'}"
        async with Penstock(url, extensions=["events", RECORDER]) as app:
            return await work(app)

    return asyncio.run(run())


def test_sessions_are_listed_and_one_is_shown(cli: Cli, session: str) -> None:  # noqa: F811
    listed = cli("recorder", "sessions")
    assert "Claude Code" in listed.out
    assert session[:12] in listed.out
    rows = cli("recorder", "sessions", "--assistant", "cursor", "--json").json
    assert [row["project"] for row in rows] == ["shopfront"]
    shown = cli("recorder", "show", session[:12])
    assert "Turn 2 (complete" in shown.out
    assert "> Good. Log the budget too" in shown.out
    assert "· Bash make sandbox 21.5 s" in shown.out
    one = cli("recorder", "show", session, "--turn", "1")
    assert "Turn 2" not in one.out
    assert cli("recorder", "show", session, "--turn", "9").says("1 to 2")
    missing = cli("recorder", "show", "nobody")
    assert (missing.code, missing.says("nobody")) == (3, True)


def test_figures_and_words(cli: Cli, session: str) -> None:  # noqa: F811
    stats = cli("recorder", "stats").out
    assert "2, " in stats
    assert "Bash" in stats
    found = cli("recorder", "search", "budget")
    assert "‹budget›" in found.out
    assert cli("recorder", "search", "walrus").out == "Nothing was found.\n"
    assert cli("recorder", "search", "budget", "--json").json[0]["conversation_id"] == session
    assert cli("recorder", "caught").code == 0


def test_a_learning_is_approved_edited_and_rejected(cli: Cli, session: str) -> None:  # noqa: F811
    [row] = cli("recorder", "learnings", "--json").json
    assert row["conversation_id"] == session
    assert cli("recorder", "edit", row["id"], "--title", "Budgets").out == "Saved: Budgets\n"
    assert cli("recorder", "approve", row["id"]).out == "Approved: Budgets\n"
    assert cli("recorder", "reject", row["id"]).out == "Rejected: Budgets\n"
    assert "rejected" in cli("recorder", "learning", row["id"]).out
    assert cli("recorder", "revoke", row["id"]).says("was not published")
    assert cli("recorder", "learnings", "--state", "proposed").out == "No learning matches.\n"


def test_an_export_goes_to_a_file_of_its_owner_alone(
    cli: Cli,  # noqa: F811
    session: str,
    tmp_path: Path,
) -> None:
    out = tmp_path / "mine.ndjson"
    told = cli("recorder", "export", "--session", session, "--out", str(out))
    assert "SHA-256" in told.out
    assert stat.S_IMODE(out.stat().st_mode) == 0o600
    lines = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert lines[0]["kind"] == "session"
    assert lines[-1]["counts"]["event"] > 20
    streamed = cli("recorder", "export", "--session", session).out.splitlines()
    assert len(streamed) == len(lines)
    again = cli("recorder", "export", "--session", session, "--out", str(out))
    assert again.code != 0, "no file is written over"


def test_a_deletion_asks_first_and_proves_afterwards(cli: Cli, session: str) -> None:  # noqa: F811
    asked = cli("recorder", "delete", "--project", "checkout")
    assert "1 session would go; say --yes to delete." in asked.out
    assert len(cli("recorder", "sessions", "--json").json) == 2
    done = cli("recorder", "delete", "--project", "checkout", "--yes", "--json").json
    assert set(done[0]["left"].values()) == {0}
    assert len(cli("recorder", "sessions", "--json").json) == 1
    assert cli("recorder", "delete").says("a session, a project or a time")


def test_retention_is_said_shown_and_dropped(cli: Cli, session: str) -> None:  # noqa: F811
    assert cli("recorder", "retention").out == "Sessions are kept for ever.\n"
    assert "90 days" in cli("recorder", "retention", "--days", "90").out
    cli("recorder", "retention", "--forever", "--session", session)
    rules = cli("recorder", "retention", "--json").json
    assert [(rule["scope"], rule["days"]) for rule in rules] == [("all", 90), ("session", None)]
    assert cli("recorder", "retention", "--now").out == "No session is meant.\n"
    cli("recorder", "retention", "--drop")
    assert cli("recorder", "retention", "--days", "0").says("1 to 36,500")
    assert cli("recorder", "retention", "--days", "5", "--drop").says("one of")


def test_the_recorder_is_run_on_its_own_store(
    cli: Cli,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[tuple[list[str], dict[str, str]]] = []

    def note(_: str, words: list[str], environment: dict[str, str]) -> None:
        seen.append((words, environment))

    monkeypatch.setattr("os.execve", note)
    monkeypatch.delenv("PENSTOCK_URL")
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    assert cli("recorder", "up", "--port", "8123").code == 0
    [(words, environment)] = seen
    assert words[1:] == ["-m", "penstock.cli", "up", "penstock.apps.recorder.app", "--port", "8123"]
    assert environment["PENSTOCK_URL"] == f"sqlite:///{tmp_path}/home/recorder.db"


def test_the_application_of_its_own_is_at_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "home"))
    from penstock.apps.recorder import app as module

    found = importlib.reload(module).app
    assert found.settings.url == f"sqlite:///{tmp_path}/home/recorder.db"
    assert {"events", "recorder"} <= {each.name for each in found.extensions}
    monkeypatch.setenv("PENSTOCK_URL", "sqlite:///other.db")
    assert importlib.reload(module).app.settings.url == "sqlite:///other.db"


def test_spans_are_a_document_for_a_collector(cli: Cli, session: str) -> None:  # noqa: F811
    document = json.loads(cli("recorder", "spans", session).out)
    assert document["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["traceId"] == session


def test_demo_sessions_come_and_go(cli: Cli) -> None:  # noqa: F811
    told = cli("recorder", "demo", "--days", "2")
    assert "written." in told.out, told.err
    rows = cli("recorder", "sessions", "--json").json
    assert len(rows) == int(told.out.split()[0])
    assert f"{told.out.split()[0]} session" in cli("recorder", "demo", "--drop").out
    assert cli("recorder", "sessions").out == "No session matches.\n"


def test_the_home_is_made_by_what_writes_and_by_nothing_else(
    cli: Cli,  # noqa: F811
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.delenv("PENSTOCK_URL")
    monkeypatch.setenv("PENSTOCK_HOME", f"{tmp_path}/data/home")
    assert cli("recorder", "sessions").code == 2
    assert not (tmp_path / "data").exists()
    assert re.fullmatch(r"[1-9]\d* sessions written\.\n", cli("recorder", "demo").out)
    assert cli("recorder", "sessions").code == 0
    assert (tmp_path / "data" / "home").stat().st_mode & 0o777 == 0o700
