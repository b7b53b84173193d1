"""Hypothesis state machines over the store contract; every store must survive them.

`run_state_machine_as_test(on(open_store, StoreMachine))`, where `open_store(clock)` gives a store
that nobody else uses and that has not been opened yet.
"""

from penstock.testing.state_machine.flow import FlowMachine
from penstock.testing.state_machine.gate import GateMachine
from penstock.testing.state_machine.ground import on
from penstock.testing.state_machine.machine import StoreMachine
from penstock.testing.state_machine.schedule import ScheduleMachine

__all__ = ["FlowMachine", "GateMachine", "ScheduleMachine", "StoreMachine", "on"]
