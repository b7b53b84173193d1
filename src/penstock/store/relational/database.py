"""What the parts of a store read and write through."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from penstock.model.clock import Clock
from penstock.store.contract import Subscription
from penstock.store.relational.transaction import Transaction

T = TypeVar("T")


class Database(Protocol):
    """An open database; operations run in transactions of its choosing, and may be repeated."""

    @property
    def name(self) -> str:
        """What errors call it."""
        ...

    @property
    def clock(self) -> Clock:
        """The one clock of the store."""
        ...

    async def write(self, operation: Callable[[Transaction], T]) -> T:
        """Run an operation; returns once it is committed."""
        ...

    def write_now(self, operation: Callable[[Transaction], T]) -> T:
        """The same from a thread that has no event loop."""
        ...

    async def read(self, question: Callable[[Transaction], T]) -> T:
        """Ask, seeing one state of the database throughout."""
        ...

    def read_now(self, question: Callable[[Transaction], T]) -> T:
        """The same from a thread that has no event loop."""
        ...

    def subscribe(self) -> Subscription:
        """Listen for changes made by this or any other process."""
        ...
