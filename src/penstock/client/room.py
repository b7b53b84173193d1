"""How full a queue is, as far as this process can tell without asking every time."""

import threading

TRUST_SECONDS = 1.0
UNLIMITED_TRUST_SECONDS = 5.0
"""Without a limit, a depth only tells when a job may start, as roughly as drain rates do."""

_NO_LIMIT = 1 << 62


class Room:
    """A queue's depth as it was measured, and what went in from here since."""

    __slots__ = ("_lock", "depth", "limit", "measured_at", "queue", "taken", "trusted", "writing")

    def __init__(self, queue: str) -> None:
        self.queue = queue
        self._lock = threading.Lock()
        self.limit = 0
        self.depth = 0
        self.taken = 0
        self.writing = 0
        self.trusted = 0
        self.measured_at = float("-inf")

    @property
    def ahead(self) -> int:
        """How many jobs wait there, about."""
        return self.depth + self.taken

    @property
    def full(self) -> bool:
        """Whether the queue is at its limit."""
        return 0 < self.limit <= self.depth + self.taken

    def measured(self, depth: int, limit: int, now: float) -> None:
        """Remember a depth; what is being written meanwhile may or may not be in it."""
        self.depth = depth
        self.limit = limit
        self.taken = self.writing
        self.measured_at = now
        # Others fill the same room. Near the limit, a thousandth of it saves asking every time.
        self.trusted = max((limit - depth) // 2, limit // 1000) if limit else _NO_LIMIT

    def surely_has(self, jobs: int, now: float) -> bool:
        """Whether there is room for so many without measuring again."""
        seconds = TRUST_SECONDS if self.limit else UNLIMITED_TRUST_SECONDS
        return now - self.measured_at < seconds and self.taken + jobs <= self.trusted

    def enter(self, jobs: int) -> None:
        """So many are being written."""
        with self._lock:
            self.taken += jobs
            self.writing += jobs

    def entered(self, jobs: int) -> None:
        """They are written, or could not be."""
        with self._lock:
            self.writing -= jobs
