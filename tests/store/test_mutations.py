"""The state machine finds the bug when a guard is taken out of the SQLite store, each in turn."""

import re
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from penstock.store.open import open_store
from penstock.store.sqlite.queries import queries
from penstock.testing.state_machine import StoreMachine, on

FENCED = (
    *("complete", "fail", "snooze", "stop", "bury", "hand_back"),
    *("renew", "report_progress", "start"),
)
EXAMPLES = settings(
    max_examples=100,
    stateful_step_count=50,
    phases=[Phase.generate],
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)

Mutate = Callable[[str, str, str], None]


@pytest.fixture
def machine() -> type[StoreMachine]:
    return on(lambda clock: open_store("sqlite:///:memory:", clock), StoreMachine)


@pytest.fixture
def mutate(monkeypatch: pytest.MonkeyPatch) -> Mutate:
    """Change one named query; a pattern that matches nothing would prove nothing."""

    def change(name: str, pattern: str, replacement: str) -> None:
        sql = queries()[name]
        mutant = re.sub(pattern, replacement, sql)
        assert mutant != sql, f"{pattern} does not occur in {name}"
        monkeypatch.setitem(queries(), name, mutant)

    return change


def _finds_a_bug(machine: type[StoreMachine]) -> None:
    with pytest.raises(AssertionError):
        run_state_machine_as_test(machine, settings=EXAMPLES)


def test_an_unchanged_store_passes_the_same_examples(machine: type[StoreMachine]) -> None:
    run_state_machine_as_test(machine, settings=EXAMPLES)


@pytest.mark.parametrize("name", FENCED)
def test_a_write_that_does_not_check_the_fence_is_found(
    name: str, machine: type[StoreMachine], mutate: Mutate
) -> None:
    mutate(name, r"(\+?jobs\.|\b)fence = (\?|:fence|\w+\.fence)", r"\2 IS NOT NULL")
    _finds_a_bug(machine)


@pytest.mark.parametrize("name", FENCED)
def test_a_write_that_does_not_check_the_owner_is_found(
    name: str, machine: type[StoreMachine], mutate: Mutate
) -> None:
    mutate(name, r"(\+?jobs\.|\b)lease_owner = (\?|:owner)", r"\2 IS NOT NULL")
    _finds_a_bug(machine)


def test_a_requeue_that_resets_the_fence_is_found(
    machine: type[StoreMachine], mutate: Mutate
) -> None:
    mutate("requeue", r"attempts = 0", "attempts = 0, fence = 0")
    _finds_a_bug(machine)


@pytest.mark.parametrize("name", ["hand_back", "stop", "bury"])
def test_a_rescue_that_does_not_raise_the_fence_is_found(
    name: str, machine: type[StoreMachine], mutate: Mutate
) -> None:
    mutate(name, r"fence = fence \+ (1|:taken)", "fence = fence")
    _finds_a_bug(machine)


def test_a_claim_that_does_not_raise_the_fence_is_found(
    machine: type[StoreMachine], mutate: Mutate
) -> None:
    mutate("claim", r"fence = fence \+ 1", "fence = fence")
    _finds_a_bug(machine)


@pytest.mark.parametrize("name", ["release_keys_at_claim", "release_keys_at_end"])
def test_a_key_that_is_never_released_is_found(
    name: str, machine: type[StoreMachine], mutate: Mutate
) -> None:
    mutate(name, r"WHERE job_id", "WHERE 0 AND job_id")
    _finds_a_bug(machine)
