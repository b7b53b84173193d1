"""Ends a server whose owner was killed.

A shell holds the read end of a pipe. The pipe breaks when the owner is gone, however it went, and
then the shell signals the server and removes what it left, shared memory included. PDEATHSIG would
do less: it follows the thread that started the server, and it is Linux's alone.
"""

import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

from proof.servers.shared_memory import DETACH_SECONDS, RELEASE

# PostgreSQL kills its children itself when they are slow to stop, after 5 seconds: wait longer.
_WATCH = f"""
{RELEASE}
read -r word && exit 0
kill -"$1" "$2"
tries=200
while kill -0 "$2" 2>/dev/null && [ $tries -gt 0 ]; do sleep 0.05; tries=$((tries - 1)); done
kill -KILL "$2" 2>/dev/null
[ -z "$3" ] || release_segment "$2" "$3" {DETACH_SECONDS}
shift 3
[ $# -eq 0 ] || rm -rf -- "$@"
"""


class Leash:
    """Ties the life of a process to the life of this one."""

    def __init__(
        self,
        pid: int,
        ending: signal.Signals,
        litter: Sequence[Path],
        postgres_data: Path | None = None,
    ) -> None:
        data = str(postgres_data or "")
        self._shell = subprocess.Popen(
            ["sh", "-c", _WATCH, "leash", str(int(ending)), str(pid), data, *litter],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd="/",
            start_new_session=True,
        )

    @property
    def pid(self) -> int:
        """The process that watches."""
        return self._shell.pid

    def untie(self) -> None:
        """Let go: the process has ended, and its number may soon be another's."""
        self._shell.communicate(b"done\n")
