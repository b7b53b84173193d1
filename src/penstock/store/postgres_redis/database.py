"""The database as the rarer operations use it: any of them may make jobs ready."""

from collections.abc import Callable
from typing import TypeVar

from penstock.store.postgres.database import Beside, PostgresDatabase
from penstock.store.postgres.transaction import PostgresTransaction
from penstock.store.postgres_redis.notices import Dispatch

T = TypeVar("T")


class Doubting(Beside):
    """Has the windows filled again after every operation that changed something."""

    def __init__(self, database: PostgresDatabase, dispatch: Dispatch) -> None:
        super().__init__(database)
        self._dispatch = dispatch

    async def write(self, operation: Callable[[PostgresTransaction], T]) -> T:
        """Run an operation in a transaction of its own."""
        changed = False

        def noting(tx: PostgresTransaction) -> T:
            nonlocal changed
            answer = operation(tx)
            changed = tx.changed
            return answer

        answer = await super().write(noting)
        if changed:
            self._dispatch.doubt()
        return answer
