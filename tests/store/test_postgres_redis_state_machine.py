"""The state machines of `penstock.testing` hold on PostgreSQL with Redis beside it."""

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from penstock.model.clock import Clock
from penstock.store.contract import Store
from penstock.store.postgres_redis.store import PostgresRedisStore
from penstock.store.postgres_redis.window import Pace
from penstock.testing.state_machine import (
    FlowMachine,
    GateMachine,
    Ground,
    ScheduleMachine,
    StoreMachine,
    on,
)
from tests.support.databases import Databases
from tests.support.namespaces import in_new_namespace

MACHINES = {StoreMachine: 10, FlowMachine: 10, GateMachine: 10, ScheduleMachine: 5}


@pytest.mark.parametrize(("machine", "examples"), MACHINES.items())
def test_a_store_on_postgres_and_redis_keeps_every_promise_whatever_is_done_to_it(
    machine: type[Ground[Any]], examples: int, databases: Databases, valkey_server_url: str
) -> None:
    used: list[str] = []

    def fresh(clock: Clock) -> Store:
        while used:
            databases.give_back(used.pop())
        used.append(databases.take_store())
        pace = Pace(jobs=5, spacing_ms=0, busy=True)
        return PostgresRedisStore(used[-1], in_new_namespace(valkey_server_url), clock, pace)

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
