"""The state machines of `penstock.testing` hold on PostgreSQL."""

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
from tests.support.databases import Databases

MACHINES = {StoreMachine: 15, FlowMachine: 15, GateMachine: 15, ScheduleMachine: 10}


@pytest.mark.parametrize(("machine", "examples"), MACHINES.items())
def test_a_store_on_postgres_keeps_every_promise_whatever_is_done_to_it(
    machine: type[Ground[Any]], examples: int, databases: Databases
) -> None:
    used: list[str] = []

    def fresh(clock: Clock) -> Store:
        while used:
            databases.give_back(used.pop())
        used.append(databases.take_store())
        return open_store(used[-1], clock)

    run_state_machine_as_test(
        on(fresh, machine),
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
    databases.give_back(used.pop())
