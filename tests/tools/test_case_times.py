"""The record of how long cases take, and the tables made from it."""

import json
from collections.abc import Generator, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.support.times import CaseTimes, Clocks, read_clocks
from tools.test_times import CaseTime, dearest, folder_of, main, read_recording, total_by

CASES = [
    CaseTime("tests/model/test_retry.py::test_a", "test", 2.0, 1.0),
    CaseTime("tests/store/sqlite/test_files.py::test_b[x::y/z]", "test", 1.0, 3.0),
    CaseTime("tests/faults/test_power.py::test_c", "all", 9.0, 4.0),
    CaseTime("session", "session", 0.5, 2.0),
]


def finish(hook: Generator[None, object, object]) -> object:
    with pytest.raises(StopIteration) as stopped:
        hook.send("outcome")
    return stopped.value.value


def run_case(times: CaseTimes, nodeid: str, following: Any) -> None:
    item: Any = SimpleNamespace(nodeid=nodeid)
    protocol = times.pytest_runtest_protocol(item, following)
    next(protocol)
    teardown = times.pytest_runtest_teardown(following)
    next(teardown)
    assert finish(teardown) == "outcome"
    assert finish(protocol) == "outcome"


def test_the_servers_of_the_session_do_not_count_for_the_last_case(tmp_path: Path) -> None:
    ticks: Iterator[Clocks] = iter(
        [Clocks(0, 0), Clocks(2, 1), Clocks(3, 1), Clocks(4, 2), Clocks(9, 6)]
    )
    times = CaseTimes(tmp_path / "times.jsonl", lambda _: "test", lambda: next(ticks))
    run_case(times, "tests/model/test_a.py::test_first", object())
    run_case(times, "tests/model/test_a.py::test_last", None)
    assert read_recording(tmp_path / "times.jsonl") == [
        CaseTime("tests/model/test_a.py::test_first", "test", 2, 1),
        CaseTime("tests/model/test_a.py::test_last", "test", 1, 1),
        CaseTime("session", "session", 5, 4),
    ]


def test_clocks_do_not_run_backwards() -> None:
    earlier, later = read_clocks(), read_clocks()
    assert later.wall >= earlier.wall
    assert later.cpu >= earlier.cpu


@pytest.mark.parametrize(
    ("nodeid", "folder"),
    [
        ("tests/test_logs.py::test_a", "tests"),
        ("tests/model/deep/test_a.py::test_a", "tests/model"),
        ("tests/store/test_open.py::test_a", "tests/store"),
        ("tests/store/redis/lua/test_a.py::test_a", "tests/store/redis"),
        ("tests/apps/recorder/sanitise/test_a.py::test_a", "tests/apps/recorder"),
    ],
)
def test_large_folders_are_split(nodeid: str, folder: str) -> None:
    assert folder_of(CaseTime(nodeid, "test", 0, 0)) == folder


def test_folders_are_sorted_by_processor_time() -> None:
    totals = total_by(CASES, folder_of)
    assert [(total.name, total.cpu_s, total.cpu_percent, total.cases) for total in totals] == [
        ("tests/faults", 4.0, 40.0, 1),
        ("tests/store/sqlite", 3.0, 30.0, 1),
        ("(session servers)", 2.0, 20.0, 0),
        ("tests/model", 1.0, 10.0, 1),
    ]


def test_the_session_is_not_among_the_dearest_cases() -> None:
    assert [case.cpu_s for case in dearest(CASES)] == [4.0, 3.0, 1.0]


def test_an_earlier_recording_is_shown_as_tables_and_as_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    recording = tmp_path / "times.jsonl"
    recording.write_text("".join(json.dumps(case._asdict()) + "\n" for case in CASES))
    assert main(["--from", str(recording), "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert [tier["name"] for tier in figures["tiers"]] == ["all", "test", "session"]
    assert figures["total"][0]["cases"] == 3
    assert main(["--from", str(recording)]) == 0
    assert "tests/store/sqlite" in capsys.readouterr().out


def test_a_recording_that_does_not_exist_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--from", str(tmp_path / "none.jsonl")]) == 1
    assert "does not exist" in capsys.readouterr().err
