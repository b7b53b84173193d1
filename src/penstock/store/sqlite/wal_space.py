"""Space at the end of the `-wal` file, made before commits need it.

A commit that makes the file longer has the file system sync its own journal with it, and takes
twice as long as one into space that is there. Once the log has been checkpointed, SQLite writes
over it from the beginning; until then it only grows.

Nothing but zeros is written, behind the end of the file, while the write lock of SQLite keeps
everybody else from writing there. A log ends for SQLite at the first frame that does not carry the
salt of its header: zeros are no frame, as what is left of an older log is none.
"""

import os
from contextlib import suppress

HEADER_BYTES = 32
FRAME_BYTES = 24
AHEAD = 32
SPARE = 8


class WalSpace:
    """The space in the log of one file, counted in pages."""

    def __init__(self, path: str, page_bytes: int) -> None:
        self._page_bytes = FRAME_BYTES + page_bytes
        self._pages = 0
        self._file: int | None = None
        with suppress(OSError):
            self._file = os.open(f"{path}-wal", os.O_RDWR | os.O_CLOEXEC)

    def provide(self, used: int) -> None:
        """Have space for some pages more than the log has; to be called under the write lock."""
        if used + SPARE <= self._pages or self._file is None:
            return
        wanted = HEADER_BYTES + (used + AHEAD) * self._page_bytes
        size = os.fstat(self._file).st_size
        with suppress(OSError):  # a full disk: SQLite will say so, if it has to
            if size < wanted:
                os.pwrite(self._file, bytes(wanted - size), size)
        self._pages = (max(size, wanted) - HEADER_BYTES) // self._page_bytes

    def close(self) -> None:
        """Let the file go."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
