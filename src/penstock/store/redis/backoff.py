"""How long to leave a server alone that did not answer."""

import random
import time

FIRST_SECONDS = 0.05
LONGEST_SECONDS = 2.0


class Backoff:
    """Doubles with every failure and ends with the first success; safe from any thread."""

    def __init__(self) -> None:
        self.failures = 0
        self._until = 0.0

    def failed(self) -> None:
        """Another try in vain."""
        delay = min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** min(self.failures, 10))
        self.failures += 1
        # Apart from each other, or a thousand clients come back in the same instant.
        self._until = time.monotonic() + delay * random.uniform(0.5, 1.0)

    def succeeded(self) -> None:
        """It answered."""
        if self.failures:
            self.failures = 0
            self._until = 0.0

    def seconds(self) -> float:
        """How long to wait before the next try."""
        return max(0.0, self._until - time.monotonic()) if self.failures else 0.0
