"""Connections lent to callers, who begin transactions of their own on them."""

import asyncio
import threading
import weakref
from collections.abc import Iterable
from contextvars import ContextVar
from pathlib import Path

import apsw

from penstock.model.store_errors import TransactionsMet
from penstock.store.sqlite.connect import BusyWait, connect

Lent = tuple[str, "weakref.ref[apsw.Connection]"]

_by_task: ContextVar[tuple[Lent, ...]] = ContextVar("_by_task", default=())
_by_thread: dict[int, list[Lent]] = {}


def lend(path: Path, name: str) -> apsw.Connection:
    """A connection for the caller's own transactions."""
    connection = connect(path, kind=Lending)
    assert isinstance(connection, Lending)
    connection.lent_of = name
    # A transaction that reads first and writes later could not get the lock any more.
    connection.transaction_mode = "IMMEDIATE"
    connection.set_busy_handler(LentWait(name))
    lent: Lent = (name, weakref.ref(connection))
    here = threading.get_ident()
    _by_task.set((*_alive(_by_task.get()), lent))
    _by_thread[here] = [*_alive(_by_thread.get(here, ())), lent]
    return connection


def holds_write_lock(name: str) -> bool:
    """Whether this very task holds a write transaction, which our writer would wait for."""
    return _is_held(name, _by_task.get())


class Lending(apsw.Connection):
    """A connection of a caller, who begins its transactions by `with connection:`.

    It does not wait for a lock that another task of the same event loop holds: while it does, that
    task could not let go of it.
    """

    lent_of = ""

    def __enter__(self) -> apsw.Connection:
        if not _is_writing(self) and _is_deadlock(self.lent_of):
            raise TransactionsMet(self.lent_of)
        return super().__enter__()


class LentWait(BusyWait):
    """Waits for a lock that somebody may let go of."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    def __call__(self, tries: int) -> bool:
        """Wait a step; whether to try again."""
        return not (tries == 0 and _is_deadlock(self._name)) and super().__call__(tries)


def _is_deadlock(name: str) -> bool:
    """Whether a transaction that this thread would have to go on with holds the lock."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return _is_held(name, _by_thread.get(threading.get_ident(), ()))


def _alive(lent: Iterable[Lent]) -> list[Lent]:
    return [each for each in lent if each[1]() is not None]


def _is_held(name: str, lent: Iterable[Lent]) -> bool:
    return any(_is_writing(given()) for path, given in lent if path == name)


def _is_writing(connection: apsw.Connection | None) -> bool:
    try:
        return connection is not None and connection.txn_state("main") == apsw.SQLITE_TXN_WRITE
    except apsw.ConnectionClosedError:
        return False
