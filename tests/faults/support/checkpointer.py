"""Checkpoints in every mode until told to stop, and says how large the WAL became.

Argument: the store's file.
"""

import os
import select
import sys
from contextlib import suppress
from itertools import cycle
from pathlib import Path

import apsw

from penstock.store.sqlite.connect import connect
from tests.faults.support.children import hear, say

MODES = (
    apsw.SQLITE_CHECKPOINT_PASSIVE,
    apsw.SQLITE_CHECKPOINT_FULL,
    apsw.SQLITE_CHECKPOINT_RESTART,
    apsw.SQLITE_CHECKPOINT_TRUNCATE,
)
PASSES = 20_000


def main(path: str) -> None:
    say("ready")
    hear()
    connection = connect(Path(path))
    largest = passes = refused = 0
    for mode in cycle(MODES):
        with suppress(FileNotFoundError):  # before the first write
            largest = max(largest, os.stat(path + "-wal").st_size)
        try:
            connection.wal_checkpoint(mode=mode)
            passes += 1
        except apsw.BusyError:
            refused += 1
        stop, _, _ = select.select([sys.stdin], [], [], 0.005)
        if stop or passes + refused == PASSES:
            break
    connection.close()
    say({"largest": largest, "passes": passes, "refused": refused})


if __name__ == "__main__":
    main(sys.argv[1])
