"""`penstock events archive`, `query` and `erase`, and `penstock erase` where events are kept."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Cli, cli, penstock  # noqa: F401

APP = "tests.events.telemetry:app"
LINES = "".join(
    json.dumps(
        {
            "event_type": "tool_use",
            "session_id": session,
            "tenant_id": "acme",
            "payload": {"n": n, "bad": False},
            "event_id": f"e{n}",
            "timestamp": f"2026-0{n + 1}-01T00:00:00Z",
        }
    )
    + "\n"
    for n, session in enumerate(("a", "b", "a"))
)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'work.db'}"


@pytest.fixture
def appended(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cli:  # noqa: F811
    """A log with three events in three months."""
    monkeypatch.setenv("PENSTOCK_EVENTS__ARCHIVE", str(tmp_path / "archive"))
    monkeypatch.delitem(sys.modules, "tests.events.telemetry", raising=False)
    assert cli("events", "append", stdin=LINES).code == 0
    return cli


def test_months_are_archived_and_queried_together_with_the_log(appended: Cli) -> None:
    made = appended("events", "archive", "--before", "2026-02-15T00:00Z")
    assert made.out == "1 event archived in 1 file.\n", made.err
    again = appended("events", "archive", "--before", "2026-02-15T00:00Z", "--json")
    assert again.json == []
    sql = "SELECT session_id, count(*) AS n FROM events GROUP BY 1 ORDER BY 1"
    assert appended("events", "query", sql, "--json").json == [
        {"session_id": "a", "n": 2},
        {"session_id": "b", "n": 1},
    ]
    narrowed = ("--since", "2026-01-15T00:00Z", "--until", "2026-02-15T00:00Z", "--tenant", "acme")
    sql = "SELECT event_id, make_date(2026, 1, 1) AS day FROM events"
    assert appended("events", "query", sql, *narrowed, "--json").json == [
        {"event_id": "e1", "day": "2026-01-01"}
    ]
    cut = appended("events", "query", sql, "--limit", "1")
    assert "There are more than 1 row." in cut.out
    assert appended("events", "query", "DROP TABLE live").says("it takes one SELECT")


def test_jobs_are_archived_by_hand_if_a_time_or_a_setting_says_which(appended: Cli) -> None:
    none = appended("events", "archive-jobs", "--before", "2026-02-15T00:00Z")
    assert none.out == "No job is old enough.\n", none.err
    assert appended("events", "archive-jobs").says("events.jobs_archive_days above 0")
    assert appended("events", "query", "SELECT count(*) AS n FROM jobs", "--json").json == [
        {"n": 0}
    ]


def test_a_session_is_erased_and_then_there_is_nothing_to_erase(appended: Cli) -> None:
    asked = ("events", "erase", "a", "--tenant", "acme", "--app", APP)
    assert appended(*asked, "--json").json == {"erased": {"events": 2}, "remarks": []}
    assert appended(*asked).out == "There was nothing to erase.\n"
    left = appended("events", "ls", "--json").json
    assert [event["event_id"] for event in left if event["event_type"] == "tool_use"] == ["e1"]


def test_a_tenant_is_erased_with_its_events(appended: Cli) -> None:
    erased = appended("erase", "--tenant", "acme", "--app", APP, "--yes", "--json").json["erased"]
    assert erased["events"] == 3
    left = appended("events", "ls", "--json").json
    assert {event["event_type"] for event in left} == {"erasure"}
