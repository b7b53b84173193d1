"""The state machines of `penstock.testing` hold on every flavour of every store."""

from collections.abc import Callable
from itertools import count
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from penstock.model.clock import Clock
from penstock.store.contract import Store
from penstock.store.open import open_store
from proof.state_machine import (
    FlowMachine,
    GateMachine,
    Ground,
    ScheduleMachine,
    StoreMachine,
    on,
)
from tests.support.databases import Databases
from tests.support.namespaces import in_new_namespace
from tests.support.places import LONG

pytestmark = pytest.mark.thorough
MACHINES: tuple[type[Ground[Any]], ...] = (StoreMachine, FlowMachine, GateMachine, ScheduleMachine)
# The same examples at every run; of a flavour that has a near relative, of the first machine only.
SHORT = {"sqlite in memory": 6, "postgres": 2, "valkey": 3}
RELATIVES = {"postgres+redis": 2, "redis6": 2, "valkey_cluster": 2}
# Random ones.
EXAMPLES = {
    "sqlite in memory": 400,
    "sqlite": 40,
    "postgres": 80,
    "valkey": 160,
    "postgres+redis": 40,
    "redis6": 40,
    "valkey_cluster": 40,
}
CASES = [
    *((flavour, machine) for flavour in (EXAMPLES if LONG else SHORT) for machine in MACHINES),
    *((flavour, StoreMachine) for flavour in ({} if LONG else RELATIVES)),
]
Opener = Callable[[Clock], Store]


@pytest.fixture
def fresh(flavour: str, request: pytest.FixtureRequest) -> Opener:
    """Open an empty store for every example."""
    if flavour == "sqlite in memory":
        return lambda clock: open_store("sqlite:///:memory:", clock)
    if flavour == "sqlite":
        folder, numbers = request.getfixturevalue("tmp_path"), count()
        return lambda clock: open_store(f"sqlite:///{folder}/{next(numbers)}.db", clock)
    if flavour.startswith("postgres"):
        url = _recycled(request)
        if flavour == "postgres":
            return lambda clock: open_store(url(), clock)
        server: str = request.getfixturevalue("valkey_server_url")
        return lambda clock: open_store(url(), clock, dispatch=in_new_namespace(server))
    server = request.getfixturevalue(f"{flavour}_server_url")
    return lambda clock: open_store(in_new_namespace(server), clock)


def _recycled(request: pytest.FixtureRequest) -> Callable[[], str]:
    """Take a database for an example, and give back the one before."""
    databases: Databases = request.getfixturevalue("databases")
    used: list[str] = []

    def give_back() -> None:
        while used:
            databases.give_back(used.pop())

    def take() -> str:
        give_back()
        used.append(databases.take_store())
        return used[-1]

    request.addfinalizer(give_back)
    return take


@pytest.mark.parametrize(("flavour", "machine"), CASES)
def test_a_store_keeps_every_promise_whatever_is_done_to_it(
    flavour: str, machine: type[Ground[Any]], fresh: Opener
) -> None:
    run_state_machine_as_test(
        on(fresh, machine),
        settings=settings(
            max_examples=EXAMPLES[flavour] if LONG else (SHORT | RELATIVES)[flavour],
            stateful_step_count=40,
            suppress_health_check=list(HealthCheck),
        ),
    )
