"""The state machines of `penstock.testing` hold on SQLite, in memory and on a file."""

from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from penstock.model.clock import Clock
from penstock.store.contract import Store
from penstock.store.open import open_store
from penstock.testing.state_machine import (
    FlowMachine,
    GateMachine,
    Ground,
    ScheduleMachine,
    StoreMachine,
    on,
)

MACHINES = {StoreMachine: 50, FlowMachine: 50, GateMachine: 50, ScheduleMachine: 30}


def _settings(examples: int, steps: int) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


@pytest.mark.parametrize(("machine", "examples"), MACHINES.items())
def test_a_store_in_memory_keeps_every_promise_whatever_is_done_to_it(
    machine: type[Ground[Any]], examples: int
) -> None:
    fresh = on(lambda clock: open_store("sqlite:///:memory:", clock), machine)
    run_state_machine_as_test(fresh, settings=_settings(examples, 40))


@pytest.mark.parametrize("machine", MACHINES)
def test_a_store_on_a_file_keeps_every_promise_whatever_is_done_to_it(
    machine: type[Ground[Any]], tmp_path: Path
) -> None:
    numbers = count()

    def fresh(clock: Clock) -> Store:
        return open_store(f"sqlite:///{tmp_path}/{next(numbers)}.db", clock)

    run_state_machine_as_test(on(fresh, machine), settings=_settings(3, 30))
