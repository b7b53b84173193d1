"""The state machines find the bug when a guard is taken out of the SQLite store, each in turn.

`make test` takes out one or two for each machine, `make long` all of them.
"""

import re
from collections.abc import Callable
from typing import Any

import pytest
from _pytest.mark import ParameterSet
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from penstock.model.store_errors import StoreError
from penstock.store.open import open_store
from penstock.store.sqlite.connect import queries
from proof.state_machine import (
    FlowMachine,
    GateMachine,
    Ground,
    ScheduleMachine,
    StoreMachine,
    on,
)

pytestmark = pytest.mark.thorough


def later(*names: str) -> list[ParameterSet]:
    """Leave these to the long form: each is a hunt of its own."""
    return [pytest.param(name, marks=pytest.mark.long) for name in names]


FENCED = (
    "complete",
    *later("fail", "stop", "snooze", "bury", "hand_back", "renew", "report_progress", "start"),
)
EXAMPLES = settings(
    max_examples=20,
    stateful_step_count=40,
    phases=[Phase.generate],
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)

# Which examples are drawn depends on the modules that are loaded: a hunt goes on until it finds.
HUNT = settings(EXAMPLES, max_examples=500)

Mutate = Callable[[str, str, str], None]


@pytest.fixture
def mutate(monkeypatch: pytest.MonkeyPatch) -> Mutate:
    """Change one named query; a pattern that matches nothing would prove nothing."""

    def change(name: str, pattern: str, replacement: str) -> None:
        sql = queries()[name]
        mutant = re.sub(pattern, replacement, sql)
        assert mutant != sql, f"{pattern} does not occur in {name}"
        monkeypatch.setitem(queries(), name, mutant)

    return change


def _run(machine: type[Ground[Any]], examples: settings = EXAMPLES) -> None:
    fresh = on(lambda clock: open_store("sqlite:///:memory:", clock), machine)
    run_state_machine_as_test(fresh, settings=examples)


def _finds_a_bug(machine: type[Ground[Any]]) -> None:
    with pytest.raises((AssertionError, StoreError)):
        _run(machine, HUNT)


@pytest.mark.long
@pytest.mark.parametrize("machine", [StoreMachine, FlowMachine, GateMachine, ScheduleMachine])
def test_an_unchanged_store_passes(machine: type[Ground[Any]]) -> None:
    _run(machine)


@pytest.mark.parametrize("name", FENCED)
def test_a_write_that_does_not_check_the_fence_is_found(name: str, mutate: Mutate) -> None:
    mutate(name, r"(\+?jobs\.|\b)fence = (\?|:fence|\w+\.fence)", r"\2 IS NOT NULL")
    _finds_a_bug(StoreMachine)


@pytest.mark.parametrize("name", FENCED)
def test_a_write_that_does_not_check_the_owner_is_found(name: str, mutate: Mutate) -> None:
    mutate(name, r"(\+?jobs\.|\b)lease_owner = (\?|:owner)", r"\2 IS NOT NULL")
    _finds_a_bug(StoreMachine)


@pytest.mark.long
def test_a_requeue_that_resets_the_fence_is_found(mutate: Mutate) -> None:
    mutate("requeue", r"attempts = 0", "attempts = 0, fence = 0")
    _finds_a_bug(StoreMachine)


@pytest.mark.long
@pytest.mark.parametrize("name", ["hand_back", "stop", "bury"])
def test_a_rescue_that_does_not_raise_the_fence_is_found(name: str, mutate: Mutate) -> None:
    mutate(name, r"fence = fence \+ (1|:taken)", "fence = fence")
    _finds_a_bug(StoreMachine)


def test_a_claim_that_does_not_raise_the_fence_is_found(mutate: Mutate) -> None:
    mutate("claim", r"fence = fence \+ 1", "fence = fence")
    _finds_a_bug(StoreMachine)


@pytest.mark.parametrize(
    ("pattern", "replacement"),
    [
        (r"WHEN NEW\.status IS NOT OLD\.status", "WHEN NEW.status <> 'cancelled'"),
        pytest.param(
            r"UPDATE OF status ON jobs\nWHEN NEW\.status IS NOT OLD\.status",
            "UPDATE ON jobs",
            marks=pytest.mark.long,
        ),
    ],
)
def test_a_change_that_is_told_never_or_twice_is_found(
    pattern: str, replacement: str, mutate: Mutate
) -> None:
    mutate("record_every_change", pattern, replacement)
    _finds_a_bug(StoreMachine)


@pytest.mark.long
@pytest.mark.parametrize("name", ["release_keys_at_claim", "release_keys_at_end"])
def test_a_key_that_is_never_released_is_found(name: str, mutate: Mutate) -> None:
    mutate(name, r"WHERE job_id", "WHERE 0 AND job_id")
    _finds_a_bug(StoreMachine)


@pytest.mark.long
def test_an_edge_to_an_ended_parent_that_is_taken_for_running_is_found(mutate: Mutate) -> None:
    mutate("statuses", r"SELECT id, status", "SELECT id, 'in_progress'")
    _finds_a_bug(FlowMachine)


def test_an_edge_that_is_closed_a_second_time_is_found(mutate: Mutate) -> None:
    mutate("open_edges", r" AND edge\.outcome IS NULL", "")
    _finds_a_bug(FlowMachine)


@pytest.mark.parametrize("status", [*later("completed", "cancelled"), "dead_letter"])
def test_a_release_that_forgets_some_parents_is_found(status: str, mutate: Mutate) -> None:
    mutate("open_edges", r"= edge\.parent_id$", rf"\g<0> AND parent.status <> '{status}'")
    _finds_a_bug(FlowMachine)


def test_a_job_that_is_staged_while_it_waits_is_found(mutate: Mutate) -> None:
    mutate("stage", r"AND waiting_on = 0", "")
    _finds_a_bug(FlowMachine)


@pytest.mark.long
def test_a_restore_that_forgets_a_second_parent_is_found(mutate: Mutate) -> None:
    mutate("restorable", r"\n\s+AND NOT EXISTS[\s\S]+", "")
    _finds_a_bug(FlowMachine)


@pytest.mark.long
def test_a_restore_that_brings_back_what_was_cancelled_by_hand_is_found(mutate: Mutate) -> None:
    mutate("restorable", r"error_details ->> '\$\.code' = 'ParentFailed'", "1")
    _finds_a_bug(FlowMachine)


@pytest.mark.long
def test_a_restore_against_the_edge_s_own_word_is_found(mutate: Mutate) -> None:
    mutate("reopen_edges", r"AND on_requeue = 'restore'", "")
    _finds_a_bug(FlowMachine)


@pytest.mark.long
def test_results_that_are_forgotten_while_a_parent_may_come_back_are_found(mutate: Mutate) -> None:
    mutate("inputs_passed", r"\n\s+AND NOT EXISTS[\s\S]+", "")
    _finds_a_bug(FlowMachine)


def test_a_line_that_nobody_joins_is_found(mutate: Mutate) -> None:
    mutate("last_in_line", r"WHERE", "WHERE 0 AND")
    _finds_a_bug(FlowMachine)


@pytest.mark.long
@pytest.mark.parametrize("name", ["step_out_of_line", "end_line_with", "leave_line"])
def test_a_line_that_does_not_close_up_is_found(name: str, mutate: Mutate) -> None:
    mutate(name, r"WHERE", "WHERE 0 AND")
    _finds_a_bug(FlowMachine)


@pytest.mark.long
def test_jobs_that_cannot_stand_in_line_twice_are_found(mutate: Mutate) -> None:
    mutate("insert_edge", r"ON CONFLICT[\s\S]+", "")
    _finds_a_bug(FlowMachine)


@pytest.mark.parametrize("scope", ["queue", *later("type", "tenant")])
def test_a_claim_that_ignores_a_pause_is_found(scope: str, mutate: Mutate) -> None:
    mutate("gates", rf"'{scope}'", "'nothing'")
    _finds_a_bug(FlowMachine)


@pytest.mark.long
def test_a_pause_that_outlives_its_job_is_found(mutate: Mutate) -> None:
    mutate("forget_job_pause", r"WHERE", "WHERE 0 AND")
    _finds_a_bug(FlowMachine)


def test_a_claim_that_ignores_limits_is_found(mutate: Mutate) -> None:
    mutate("gates", r"kind <> 'depth'", "0")
    _finds_a_bug(GateMachine)


def test_leases_of_other_owners_that_take_no_slots_are_found(mutate: Mutate) -> None:
    mutate("leased_lanes", r"WHERE", "WHERE 0 AND")
    _finds_a_bug(GateMachine)


@pytest.mark.long
def test_slots_of_other_owners_that_are_forgotten_are_found(mutate: Mutate) -> None:
    mutate("all_slots", r"FROM slots", "FROM slots WHERE 0")
    _finds_a_bug(GateMachine)


@pytest.mark.long
def test_a_rate_that_forgets_what_it_let_start_is_found(mutate: Mutate) -> None:
    mutate("rate_starts", r"WHERE", "WHERE 0 AND")
    _finds_a_bug(GateMachine)


@pytest.mark.long
def test_a_breaker_that_lets_several_try_is_found(mutate: Mutate) -> None:
    mutate("set_probe", r"WHERE", "WHERE 0 AND")
    _finds_a_bug(GateMachine)


@pytest.mark.long
def test_a_breaker_that_never_opens_is_found(mutate: Mutate) -> None:
    mutate("set_breaker", r"WHERE", "WHERE 0 AND")
    _finds_a_bug(GateMachine)


@pytest.mark.long
def test_a_declaration_that_overrides_an_operator_is_found(mutate: Mutate) -> None:
    mutate("set_limit", r"WHERE excluded[\s\S]+", "")
    _finds_a_bug(GateMachine)


@pytest.mark.parametrize("name", ["advance_schedule", *later("resume_schedule")])
def test_a_schedule_that_two_processes_act_on_is_found(name: str, mutate: Mutate) -> None:
    mutate(name, r"revision = :revision", "1")
    _finds_a_bug(ScheduleMachine)


@pytest.mark.parametrize("name", [*later("advance_schedule"), "due_schedules"])
def test_a_paused_schedule_that_fires_is_found(name: str, mutate: Mutate) -> None:
    mutate(name, r"enabled = 1", "1")
    _finds_a_bug(ScheduleMachine)


@pytest.mark.long
def test_a_schedule_whose_revision_stands_still_is_found(mutate: Mutate) -> None:
    mutate("advance_schedule", r"revision = revision \+ 1", "revision = revision")
    _finds_a_bug(ScheduleMachine)


@pytest.mark.long
def test_a_cycle_that_only_a_requeue_would_close_is_found(mutate: Mutate) -> None:
    mutate("open_parents", r"AND \(outcome IS NULL[\s\S]+", "AND outcome IS NULL")
    _finds_a_bug(FlowMachine)
