"""A Hypothesis state machine over the store contract; every store must survive it.

`run_state_machine_as_test(store_machine(open_store))`, where `open_store(clock)` gives a store that
nobody else uses and that has not been opened yet.
"""

from penstock.testing.state_machine.machine import StoreMachine, store_machine

__all__ = ["StoreMachine", "store_machine"]
