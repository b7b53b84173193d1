"""Group commit on one connection: what arrives together shares a transaction.

Should one of the operations fail, the transaction is undone and each runs again by itself, so
that none takes another with it. The same where others hold what it needs: one operation takes its
locks in an order that all share, but several in a row do not, and would lock each other out.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from penstock.model.errors import StoreUnavailable
from penstock.store.postgres.link import Kind, Link
from penstock.store.postgres.transaction import PostgresTransaction
from penstock.store.postgres.trip import Sent, Trip
from penstock.store.relational.group_commit import Entry, GroupCommit, deliver


class Writer(GroupCommit[PostgresTransaction]):
    """Group commit on one link."""

    commits_in_place = True

    def __init__(self, name: str, link: Link, announce: Callable[[Link], None]) -> None:
        self._link = link
        self._announce = partial(announce, link)
        super().__init__(name, self._announce)

    def commit(self, batch: list[Entry[PostgresTransaction]]) -> bool:
        """Run the operations in one transaction, or one by one; whether something changed."""
        if len(batch) == 1:
            return self._alone(batch[0])
        try:
            answers, changed = self._link.perform(
                lambda tx: [e.operation(tx) for e in batch], kind=Kind.GIVING_WAY
            )
        except StoreUnavailable as error:
            for entry in batch:
                entry.error = error
            return False
        except BaseException:
            changes = [self._alone(entry) for entry in batch]
            return any(changes)
        for entry, answer in zip(batch, answers, strict=True):
            entry.result = answer
        return changed

    def begin(self, entry: Entry[PostgresTransaction]) -> bool:
        """Send a trip whose answer the event loop of its caller waits for."""
        trip, loop = entry.operation, entry.loop
        if not isinstance(trip, Trip) or loop is None or self.is_busy:
            return False
        return self._link.begin(trip, loop, partial(self._ended, entry))

    def let_go(self) -> None:
        """Leave the connection to its owner, who may have something to tell by it."""
        self._link.finish()

    def _ended(self, entry: Entry[PostgresTransaction], sent: Sent[Any], in_loop: bool) -> None:
        entry.result, entry.error = sent.result, sent.error
        if entry.result is None and entry.error is None:
            self.submit(entry)
            return
        if entry.error is None and sent.trip.changes:
            # Somebody idle may wait for it: told before the caller, who is not.
            self._announce()
        if in_loop:
            entry.resolve()
        else:
            deliver([entry])

    def _alone(self, entry: Entry[PostgresTransaction]) -> bool:
        try:
            entry.result, changed = self._link.perform(entry.operation)
        except BaseException as error:
            entry.error = error
            return False
        if changed and isinstance(entry.operation, Trip):
            # Somebody idle may wait for it: told before the caller, who is not.
            self._announce()
            return False
        return changed
