"""The state machines of `penstock.testing` hold on Valkey, on Redis 6.2 and on a cluster."""

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
from tests.support.namespaces import in_new_namespace

MACHINES = (StoreMachine, FlowMachine, GateMachine, ScheduleMachine)
EXAMPLES = {"valkey": 25, "redis6": 5, "valkey_cluster": 5}


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(("server", "examples"), EXAMPLES.items())
def test_a_store_on_redis_keeps_every_promise_whatever_is_done_to_it(
    machine: type[Ground[Any]], server: str, examples: int, request: pytest.FixtureRequest
) -> None:
    server_url: str = request.getfixturevalue(f"{server}_server_url")

    def fresh(clock: Clock) -> Store:
        return open_store(in_new_namespace(server_url), clock)

    run_state_machine_as_test(
        on(fresh, machine),
        settings=settings(
            max_examples=examples,
            stateful_step_count=40,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
