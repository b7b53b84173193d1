"""Hypothesis state machines over the store contract; every store must survive them.

`run_state_machine_as_test(on(open_store, StoreMachine))`, where `open_store(clock)` gives a store
that nobody else uses and that has not been opened yet. `StoreMachine` is about leases and keys,
`FlowMachine` about jobs that wait for each other, `GateMachine` about limits and breakers,
`ScheduleMachine` about schedules.
"""

from proof.state_machine.gate import GateMachine
from proof.state_machine.ground import Ground, on
from proof.state_machine.machine import StoreMachine
from proof.state_machine.scenes import FlowMachine
from proof.state_machine.schedule import ScheduleMachine

__all__ = ["FlowMachine", "GateMachine", "Ground", "ScheduleMachine", "StoreMachine", "on"]
