"""What is derived is what the log says, whatever is done to workers, events and sessions."""

from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from penstock import Penstock
from penstock.model.clock import Clock
from proof.state_machine.events import EventMachine
from proof.tally import tally
from tests.support.databases import Databases
from tests.support.places import LONG

# The same examples at every run, and twenty times as many random ones in the long form.
EXAMPLES = {"sqlite": 12, "postgres": 4}
Opener = Callable[[Clock], Penstock]


@pytest.fixture
def fresh(kind: str, request: pytest.FixtureRequest) -> Opener:
    """Open an empty store for every example."""
    if kind == "sqlite":
        folder, numbers = request.getfixturevalue("tmp_path"), count()
        return lambda clock: Penstock(
            f"sqlite:///{folder}/{next(numbers)}.db", extensions=[tally], clock=clock
        )
    take = _recycled(request)
    return lambda clock: Penstock(take(), extensions=[tally], clock=clock)


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


@pytest.mark.parametrize("kind", EXAMPLES)
def test_what_is_derived_is_what_the_log_says(kind: str, fresh: Opener) -> None:
    machine = type("Machine", (EventMachine,), {"open_app": staticmethod(fresh)})
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=EXAMPLES[kind] * (20 if LONG else 1),
            stateful_step_count=40,
            deadline=None,
            derandomize=not LONG,
            suppress_health_check=list(HealthCheck),
        ),
    )
