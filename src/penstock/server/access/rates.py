"""How often a caller may ask: a bucket per token and per tenant that fills steadily."""

from time import monotonic

from msgspec import Struct

BUCKETS = 10_000


class Bucket(Struct):
    """What is left to spend, and when that was."""

    left: float
    at: float


class Rates:
    """Refuses who asks too often; each process of a server counts for itself."""

    def __init__(self, per_minute: int) -> None:
        self._per_second = per_minute / 60
        self._capacity = max(1.0, per_minute / 6)
        self._buckets: dict[str, Bucket] = {}

    def __len__(self) -> int:
        """How many callers are remembered."""
        return len(self._buckets)

    def wait_for(self, *callers: str) -> float:
        """Spend one request of each; the seconds to wait if one of them has none left."""
        if not self._per_second:
            return 0.0
        now = monotonic()
        buckets = [self._bucket(caller, now) for caller in callers]
        poorest = min((bucket.left for bucket in buckets), default=1.0)
        if poorest < 1:
            return (1 - poorest) / self._per_second
        for bucket in buckets:
            bucket.left -= 1
        return 0.0

    def _bucket(self, caller: str, now: float) -> Bucket:
        bucket = self._buckets.get(caller)
        if bucket is None:
            if len(self._buckets) >= BUCKETS:
                self._forget_full(now)
            bucket = self._buckets[caller] = Bucket(self._capacity, now)
        bucket.left = min(self._capacity, bucket.left + (now - bucket.at) * self._per_second)
        bucket.at = now
        return bucket

    def _forget_full(self, now: float) -> None:
        """One that has filled up again is as good as new."""
        filled_at = now - self._capacity / self._per_second
        self._buckets = {c: b for c, b in self._buckets.items() if b.at > filled_at}
        if len(self._buckets) >= BUCKETS:
            # A flood of callers, each of them new: the oldest make room, and memory stays bounded.
            for caller in list(self._buckets)[: BUCKETS // 10]:
                del self._buckets[caller]
