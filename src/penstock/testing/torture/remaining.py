"""Waiting for the last job to end."""

import time
from contextlib import suppress

from penstock.model.errors import StoreError
from penstock.store.contract import Store
from penstock.testing.torture.audit import chunks


class Remaining:
    """The acknowledged jobs that have not ended, as far as is known."""

    def __init__(self, store: Store) -> None:
        self.ended = 0
        self._store = store
        self._known = 0
        self._open: list[str] = []
        self._moved_at = time.monotonic()

    @property
    def none(self) -> bool:
        """Whether all known jobs have ended."""
        return not self._open

    @property
    def stuck_for(self) -> float:
        """For how many seconds nothing has ended, without an excuse."""
        return time.monotonic() - self._moved_at

    def excuse(self) -> None:
        """Count anew from here: while workers are struck nothing may end for a long time."""
        self._moved_at = time.monotonic()

    async def look(self, acknowledged: list[str]) -> None:
        """Ask again about those that had not ended."""
        self._open += acknowledged[self._known :]
        self._known = len(acknowledged)
        still = []
        for ids in chunks(self._open):
            ended: set[str] = set()
            with suppress(StoreError):  # its server is away
                ended = {j.id for j in await self._store.reader.get(ids) if j.status.terminal}
            still += [i for i in ids if i not in ended]
        if len(still) != len(self._open):
            self._moved_at = time.monotonic()
        self._open = still
        self.ended = self._known - len(still)
