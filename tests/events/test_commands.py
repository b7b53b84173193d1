"""`penstock events`, `penstock consume`, and consumers as children of `penstock up`."""

import json
import signal
from pathlib import Path

import psutil
import pytest

from tests.cli.conftest import Cli, cli, penstock  # noqa: F401
from tests.cli.running import Running, until
from tests.events.streams import Others, envelope

APP = "tests.events.telemetry:app"
PROCESS = "penstock.worker.extension_process"
LINES = "".join(
    json.dumps(
        {"event_type": "tool_use", "session_id": session, "payload": {"n": n, "bad": n == 2}}
    )
    + "\n"
    for n, session in enumerate(("a", "b", "a", "b"))
)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'work.db'}"


@pytest.fixture
def appended(cli: Cli) -> Cli:  # noqa: F811
    """A log with four events of two sessions."""
    answer = cli("events", "append", stdin=LINES)
    assert (answer.code, answer.out) == (0, "4 events appended.\n"), answer.err
    return cli


def test_events_are_listed_by_what_is_asked_for(appended: Cli) -> None:
    head, *rows = [line for line in appended("events", "ls").out.splitlines() if "─" not in line]
    assert head.split() == ["SEQUENCE", "HAPPENED", "TYPE", "PLATFORM", "SESSION", "EVENT"]
    assert len(rows) == 4
    found = appended("events", "ls", "--session", "b", "--json").json
    assert [event["payload"]["n"] for event in found] == [1, 3]
    assert appended("events", "ls", "--type", "none").out == "No event matches.\n"
    assert appended("events", "ls", "--since", "yesterday").says("yesterday")


def test_one_event_is_shown_whole(appended: Cli) -> None:
    event = appended("events", "ls", "--json").json[0]
    shown = appended("events", "show", event["event_id"])
    assert '"n": 0' in shown.out
    assert appended("events", "show", event["event_id"], "--json").json == event
    missing = appended("events", "show", "none")
    assert (missing.code, missing.says("No event has the id 'none'")) == (3, True)


def test_one_event_is_appended_by_its_options(cli: Cli) -> None:  # noqa: F811
    made = cli("events", "append", "--type", "debug", "--payload", '{"a": 1}', "--json").json
    assert (made[0]["sequence"], made[0]["created"]) == (1, True)
    assert cli("events", "append", "--type", "debug", "--payload", "[1").says("cannot be read")
    answer = cli("events", "append", stdin='{"event_type": "x"}\n{"event_type": 1}\n')
    assert answer.says("of line 2 cannot be read")
    assert len(cli("events", "ls", "--json").json) == 1


def test_the_last_events_are_shown_a_line_each(appended: Cli) -> None:
    lines = appended("events", "tail", "-n", "2").out.splitlines()
    assert [line.split()[0] for line in lines] == ["3", "4"]
    told = appended("events", "tail", "--session", "a", "--json").out.splitlines()
    assert [json.loads(line)["payload"]["n"] for line in told] == [0, 2]


def test_stats_of_a_log_that_nobody_reads(appended: Cli) -> None:
    answer = appended("events", "stats")
    assert "4 in the log" in answer.out
    assert "No consumer has run yet." in answer.out
    assert appended("events", "stats", "--json").json["latest"] == 4


def test_what_needs_the_application_says_so(appended: Cli) -> None:
    assert appended("events", "rebuild").says("name it with --app MODULE:APP")
    assert appended("events", "rebuild", "--consumer", "lines").says("no consumer 'lines' here")
    assert appended("events", "pause", "lines").says("no consumer 'lines'")
    assert appended("events", "replay").says("--source")


def test_words_that_a_process_does_not_take_are_refused(cli: Cli) -> None:  # noqa: F811
    answer = cli("consume", "nobody.here:app")
    assert (answer.code, answer.says("importable")) == (2, True)


def numbers(folder: Path, session: str) -> list[str]:
    file = folder / f"{session}.txt"
    return [line.split()[0] for line in file.read_text().splitlines()] if file.exists() else []


@pytest.mark.thorough
def test_up_runs_consumers_while_a_terminal_replays_and_rebuilds_what_they_derive(
    appended: Cli,
    penstock: Cli,  # noqa: F811
    tmp_path: Path,
    url: str,
) -> None:
    (tmp_path / "broken").touch()
    at = ("--app", APP, "--url", url)
    with Running(tmp_path, "up", APP, "--port", "0", "--url", url) as up:
        [letter] = until(lambda: appended("events", "dead", "--source", "lines", "--json").json)
        assert letter["reason"] == "ValueError: it is broken"
        until(lambda: numbers(tmp_path, "b") == ["1", "3"])
        (tmp_path / "broken").unlink()
        replayed = penstock("events", "replay", "--source", "lines", *at)
        assert replayed.out == "1 dead letter replayed.\n", replayed.err
        assert numbers(tmp_path, "a") == ["0", "2"]
        (tmp_path / "a.txt").write_text("nonsense here\n")
        assert penstock("events", "rebuild", *at).out == "lines: 2 sessions rebuilt.\n"
        assert numbers(tmp_path, "a") == ["0", "2"]
        appended("events", "append", stdin=LINES)
        until(lambda: numbers(tmp_path, "a") == ["0", "2", "0", "2"])
        [victim] = up.family(PROCESS)
        victim.kill()
        until(lambda: {each.pid for each in up.family(PROCESS)} - {victim.pid})
        family = up.family()
        assert up.stop() == 0
    _, alive = psutil.wait_procs(family, timeout=30)
    assert not alive
    assert "Traceback" not in up.err
    assert "consume_died" in up.err


@pytest.mark.thorough
def test_consume_spreads_slots_over_processes_and_ends_at_a_signal(
    appended: Cli, tmp_path: Path, url: str
) -> None:
    words = ("consume", APP, "lines", "--processes", "2", "--url", url)
    running = Running(tmp_path, *words)
    try:
        until(lambda: appended("events", "stats", "--json").json["consumers"])
        until(lambda: appended("events", "stats", "--json").json["consumers"][0]["workers"] == 2)
        until(lambda: numbers(tmp_path, "a") == ["0", "2"])
        assert len(running.family(PROCESS)) == 2
        assert running.stop(signal.SIGINT) == 0
    finally:
        running.__exit__(None, None, None)
    assert "Traceback" not in running.err
    assert running.err.count("process_stopped") == 2
    state = appended("events", "stats", "--json").json
    assert state["consumers"][0]["workers"] == 0, "who stops says so"


def test_an_unknown_consumer_ends_it_with_a_sentence(
    appended: Cli,
    penstock: Cli,  # noqa: F811
    url: str,
) -> None:
    answer = penstock("consume", APP, "nobody", "--url", url)
    assert answer.code == 2
    assert "There is no consumer 'nobody' here; known: lines." in answer.err
    nothing = penstock("consume", "--url", url)
    assert (nothing.code, "declared with @app.consumer" in nothing.err) == (2, True)


@pytest.mark.parametrize("how", ["ingest", "up"])
@pytest.mark.thorough("postgres")
def test_ingest_writes_what_others_add_to_the_stream_and_ends_at_a_signal(
    how: str,
    cli: Cli,  # noqa: F811
    tmp_path: Path,
    url: str,
    valkey_url: str,
) -> None:
    others = Others(valkey_url)
    others.add(*(envelope(n) for n in range(3)), {"nonsense": "1"})
    at = ("--url", url)
    words = ("ingest", *at) if how == "ingest" else ("up", APP, "--port", "0", *at)
    spool = str(tmp_path / "spool")
    told = {"PENSTOCK_EVENTS__STREAM": valkey_url, "PENSTOCK_EVENTS__SPOOL": spool}
    running = Running(tmp_path, *words, **told)
    try:
        until(lambda: others.length() == 0)
        others.add(envelope(3))
        until(lambda: others.length() == 0)
        found = cli("events", "ls", "--platform", "claude_code", "--json").json
        assert [event["event_id"] for event in found] == ["e0", "e1", "e2", "e3"]
        [letter] = cli("events", "dead", "--source", "ingest", "--json").json
        assert letter["reason"]
        if how == "up":
            until(lambda: sum(len(numbers(tmp_path, f"s{n}")) for n in range(3)) == 4)
        family = running.family()
        assert running.stop() == 0
    finally:
        running.__exit__(None, None, None)
    _, alive = psutil.wait_procs(family, timeout=30)
    assert not alive
    assert "Traceback" not in running.err
