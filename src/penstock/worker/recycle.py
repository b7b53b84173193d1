"""When a worker process had better be replaced by a fresh one."""

import psutil

from penstock.config import Settings

EXIT_CODE = 75


class Recycling:
    """Watches memory, abandoned threads and internal errors."""

    def __init__(self, settings: Settings) -> None:
        self.chosen: str | None = None
        self._settings = settings
        self._stuck = 0
        self._internal_errors = 0
        self._ticks = 0
        self._process = psutil.Process()

    def note_stuck(self) -> None:
        """A handler ignored its end."""
        self._stuck += 1

    def note_internal_error(self) -> None:
        """Something of ours, not of a handler, raised."""
        self._internal_errors += 1

    def reason(self, abandoned_threads: int) -> str | None:
        """Why to recycle now, or None."""
        settings = self._settings
        if abandoned_threads + self._stuck > settings.max_abandoned_threads:
            return f"{abandoned_threads + self._stuck} handlers outlived their timeouts"
        if self._internal_errors > settings.max_internal_errors:
            return f"{self._internal_errors} internal errors"
        self._ticks += 1
        if settings.memory_limit_mb and self._ticks % 10 == 0:
            used = self._process.memory_info().rss // 1_000_000
            if used > settings.memory_limit_mb:
                return f"{used} MB of memory, over the limit of {settings.memory_limit_mb}"
        return None
