"""The state machine of `penstock.testing` holds on SQLite, in memory and on a file."""

from itertools import count
from pathlib import Path

from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from penstock.model.clock import Clock
from penstock.store.contract import Store
from penstock.store.open import open_store
from penstock.testing.state_machine import StoreMachine, on


def _settings(examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def test_a_store_in_memory_keeps_every_promise_whatever_is_done_to_it() -> None:
    machine = on(lambda clock: open_store("sqlite:///:memory:", clock), StoreMachine)
    run_state_machine_as_test(machine, settings=_settings(60, 50))


def test_a_store_on_a_file_keeps_every_promise_whatever_is_done_to_it(tmp_path: Path) -> None:
    numbers = count()

    def fresh(clock: Clock) -> Store:
        return open_store(f"sqlite:///{tmp_path}/{next(numbers)}.db", clock)

    run_state_machine_as_test(on(fresh, StoreMachine), settings=_settings(5, 30))
