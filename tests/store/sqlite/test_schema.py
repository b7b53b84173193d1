"""The schema says the same as the model and the design."""

import re
from collections.abc import Iterator
from importlib.resources import files

import apsw
import pytest

from penstock.model.job import Job
from penstock.model.states import TRANSITIONS, Status, sources
from penstock.store.contract import Resolution
from penstock.store.relational.changes import record_changes
from penstock.store.sqlite.connect import SqliteTransaction, connect, queries
from penstock.store.sqlite.migrate import migrate
from penstock.testing.clock import FakeClock

TABLES_OF_THE_DESIGN = {
    *("jobs", "job_executions", "job_keys", "job_dependencies", "job_schedules", "job_logs"),
    *("dead_letter_jobs", "pauses", "limits", "workers", "audit_log", "metrics"),
}
COLUMNS_OF_THE_DESIGN = {
    *("id", "type", "queue", "category", "status", "priority", "payload", "result", "error"),
    *("error_details", "attempts", "max_retries", "rescues", "fence", "retry_delay_ms"),
    *("backoff_multiplier", "timeout_ms", "scheduled_at", "expires_at", "lease_owner"),
    *("lease_until", "cancel_requested_at", "progress_percent", "progress_message"),
    *("checkpoint", "tenant_id", "workspace_id", "created_by", "parent_job_id", "schedule_id"),
    *("waiting_on", "limit_key", "order_key", "tags", "metadata", "trace_context"),
    *("created_at", "updated_at", "queued_at", "started_at", "completed_at", "failed_at"),
}


@pytest.fixture
def connection() -> Iterator[apsw.Connection]:
    connection = connect(None)
    migrate(connection, ":memory:", FakeClock())
    yield connection
    connection.close()


def _checked(connection: apsw.Connection, table: str, column: str) -> set[str]:
    """The values a CHECK lets a column have."""
    sql = str(connection.execute("SELECT sql FROM sqlite_schema WHERE name = ?", (table,)).get)
    found = re.search(rf"CHECK \({column} (IN \([^)]+\)|= [^)]+)\)", sql)
    assert found is not None
    return set(re.findall(r"'(\w+)'", found[1]))


def _sources_written_out() -> Iterator[tuple[str, str]]:
    for file in files("penstock.store.sqlite").joinpath("sql").iterdir():
        text = file.read_text("utf-8")
        yield from ((file.name, action) for action in re.findall(r"\{from (\w+)\}", text))


def _columns(connection: apsw.Connection, table: str) -> set[str]:
    rows = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
    return {str(row[0]) for row in rows}


def test_the_states_a_row_may_have_are_those_of_the_model(connection: apsw.Connection) -> None:
    assert _checked(connection, "jobs", "status") == set(Status)


def test_the_resolutions_a_row_may_have_are_those_of_the_contract(
    connection: apsw.Connection,
) -> None:
    assert _checked(connection, "dead_letter_jobs", "resolution") == set(Resolution)


def test_every_state_guard_is_made_from_the_transition_table() -> None:
    guards = list(_sources_written_out())
    assert {action for _, action in guards} <= {step.action for step in TRANSITIONS}
    assert all(sources(action) for _, action in guards)
    assert not any("{from" in sql for sql in queries().values())


@pytest.mark.parametrize(
    "action",
    ["claim", "complete", "fail", "stop", "bury", "snooze", "hand_back", "cancel", "expire"],
)
def test_a_statement_that_changes_the_state_has_its_guard(action: str) -> None:
    name = {"cancel": "cancel_waiting"}.get(action, action)
    states = ", ".join(f"'{status}'" for status in sources(action))
    assert f"status IN ({states})" in queries()[name]


def test_every_table_of_the_design_exists(connection: apsw.Connection) -> None:
    rows = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
    assert {str(row[0]) for row in rows} >= TABLES_OF_THE_DESIGN


def test_jobs_has_every_column_of_the_design(connection: apsw.Connection) -> None:
    assert _columns(connection, "jobs") >= COLUMNS_OF_THE_DESIGN


def test_jobs_has_a_column_for_every_field_a_reader_gets(connection: apsw.Connection) -> None:
    assert _columns(connection, "jobs") >= set(Job.__struct_fields__)


def test_every_table_checks_the_types_of_its_values(connection: apsw.Connection) -> None:
    loose = connection.execute(
        "SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table' "
        "AND NOT strict AND name NOT LIKE 'sqlite_%'"
    )
    assert list(loose) == []


def test_jobs_have_the_triggers_that_their_followers_need_and_no_others(
    connection: apsw.Connection,
) -> None:
    tx = SqliteTransaction(connection, 0, 0)

    def triggers() -> set[str]:
        record_changes(tx)
        found = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'")
        return {name for (name,) in found}

    assert triggers() == set()
    tx.run("follow", {"name": "a.ended", "statuses": tx.listed(["completed"])})
    assert triggers() == {"jobs_changed"}
    tx.run("follow", {"name": "b.new", "statuses": tx.listed(["queued", "completed"])})
    assert triggers() == {"jobs_made", "jobs_changed"}
    tx.run("unfollow", {"name": "b.new"})
    assert triggers() == {"jobs_changed"}
    tx.run("unfollow", {"name": "a.ended"})
    assert triggers() == set()
