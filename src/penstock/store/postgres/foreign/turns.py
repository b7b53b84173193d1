"""Two enqueues on one connection take turns, or their savepoints would get mixed up."""

import threading
from collections.abc import Generator
from contextlib import contextmanager

_lock = threading.Lock()
_turns: dict[int, tuple[threading.Lock, int]] = {}


@contextmanager
def turn(connection: object) -> Generator[None, None, None]:
    """Have a connection for oneself; one that nobody uses is not remembered."""
    key = id(connection)
    with _lock:
        mine, users = _turns.get(key, (threading.Lock(), 0))
        _turns[key] = (mine, users + 1)
    try:
        with mine:
            yield
    finally:
        with _lock:
            mine, users = _turns.pop(key)
            if users > 1:
                _turns[key] = (mine, users - 1)
