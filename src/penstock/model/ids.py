"""ULIDs: ids that sort by the time they were made."""

import os
import sys
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from threading import Lock

from penstock.model.errors import InvalidOption

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_DIGITS = frozenset(_ALPHABET)
_PAIRS = tuple(high + low for high in _ALPHABET for low in _ALPHABET)
_SHIFTS = tuple(range(70, -1, -10))
_TO_BASE32 = str.maketrans(_ALPHABET, "0123456789abcdefghijklmnopqrstuv")

ID_LENGTH = 26
_TIME_LENGTH = 10
_MAX_MS = (1 << 48) - 1
_HIGH_BITS = 60
_LOW_LIMIT = 1 << 20


class IdSource:
    """Makes ids that only grow, whichever thread asks and wherever the wall clock jumps."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._ms = -1
        self._high = 0
        self._low = 0
        self._prefix = ""
        self._now: Callable[[], int] = _wall_ms
        self._random: Callable[[int], bytes] = _random_bytes

    def new_id(self, now_ms: int | None = None) -> str:
        """Return an id greater than all before it; where time stands still it counts on."""
        ms = self._now() if now_ms is None else _checked(now_ms)
        with self._lock:
            if ms > self._ms:
                self._start(ms)
            elif self._low == _LOW_LIMIT:
                self._carry()
            low = self._low
            self._low = low + 1
            return self._prefix + _PAIRS[low >> 10] + _PAIRS[low & 1023]

    def new_ids(self, n: int, now_ms: int | None = None) -> list[str]:
        """Return `n` ids in ascending order, several times faster than `n` calls of `new_id`."""
        ms = self._now() if now_ms is None else _checked(now_ms)
        ids: list[str] = []
        with self._lock:
            if ms > self._ms:
                self._start(ms)
            while len(ids) < n:
                if self._low == _LOW_LIMIT:
                    self._carry()
                prefix, first = self._prefix, self._low
                self._low = min(_LOW_LIMIT, first + n - len(ids))
                ids += [
                    prefix + _PAIRS[low >> 10] + _PAIRS[low & 1023]
                    for low in range(first, self._low)
                ]
        return ids

    def after_fork(self) -> None:
        """Part ways with the parent process, whose next ids would otherwise be ours too."""
        self._lock = Lock()
        if self._ms >= 0:
            self._start(self._ms + 1)

    @contextmanager
    def replaying(
        self, now: Callable[[], int], random: Callable[[int], bytes]
    ) -> Generator[None, None, None]:
        """Make ids of another clock and other chance for a while, then go on as before."""
        with self._lock:
            kept = self._ms, self._high, self._low, self._prefix, self._now, self._random
            self._ms, self._now, self._random = -1, now, random
        try:
            yield
        finally:
            with self._lock:
                self._ms, self._high, self._low, self._prefix, self._now, self._random = kept

    def _start(self, ms: int) -> None:
        random = int.from_bytes(self._random(10), "big")
        self._ms = ms
        self._high, self._low = divmod(random, _LOW_LIMIT)
        self._prefix = _encode(ms, 5) + _encode(self._high, 6)

    def _carry(self) -> None:
        self._high += 1
        self._low = 0
        if self._high >> _HIGH_BITS:
            self._start(self._ms + 1)
        else:
            self._prefix = _encode(self._ms, 5) + _encode(self._high, 6)


def is_id(text: str) -> bool:
    """Say whether `text` is a ULID as `new_id` writes it: 26 upper-case characters."""
    return len(text) == ID_LENGTH and text[0] <= "7" and _DIGITS.issuperset(text)


def derived_id(ms: int, *seed: str) -> str:
    """Return the one id that belongs to a moment and a seed, whoever asks and how often."""
    from hashlib import sha256

    digest = sha256("\0".join((str(ms), *seed)).encode()).digest()
    return _encode(_checked(ms), 5) + _encode(int.from_bytes(digest[:10], "big"), 8)


def id_prefix(ms: int) -> str:
    """Return what the ids made at that time begin with, which lies within what ids can tell."""
    return _encode(min(max(ms, 0), _MAX_MS), 5)


def id_time_ms(ulid: str) -> int:
    """Return the milliseconds since the epoch at which `ulid` was made."""
    if not is_id(ulid):
        raise InvalidOption("id", ulid, "a ULID: 26 upper-case letters and digits")
    return int(ulid[:_TIME_LENGTH].translate(_TO_BASE32), 32)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000


def _random_bytes(size: int) -> bytes:
    return os.urandom(size)


def _encode(number: int, pairs: int) -> str:
    return "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS[-pairs:]])


def _checked(now_ms: int) -> int:
    if not 0 <= now_ms <= _MAX_MS:
        raise InvalidOption("now_ms", now_ms, f"milliseconds since 1970, from 0 to {_MAX_MS}")
    return now_ms


_shared = IdSource()
new_id = _shared.new_id
new_ids = _shared.new_ids
replaying = _shared.replaying

if sys.platform != "win32":
    os.register_at_fork(after_in_child=_shared.after_fork)
