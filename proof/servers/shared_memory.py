"""Removes the System V segment of a PostgreSQL that was killed.

A server that stops removes its segment itself, and one that starts on the same data removes the
last one's. After a SIGKILL the segment stays until the machine restarts. A segment is removed only
if all of this holds: `postmaster.pid` names the server's process and the segment, the kernel names
the same process as the segment's creator, and no process is attached to it any more.

This is a shell script because the leash needs it after the owner of the server is gone. Systems
without /proc/sysvipc keep the segment.
"""

from pathlib import Path

from proof.servers.account import Account

DETACH_SECONDS = 10
"""Processes of a killed server notice that and detach within milliseconds."""

RELEASE = """
release_segment() { # process, data directory, seconds to wait
    [ "$(sed -n 1p "$2/postmaster.pid" 2>/dev/null)" = "$1" ] || return 0
    segment=$(awk 'NR == 7 {print $2}' "$2/postmaster.pid")
    looks=$(($3 * 20))
    while :; do
        attached=$(awk -v id="$segment" -v creator="$1" \
            '$2 == id && $5 == creator {print $7}' /proc/sysvipc/shm)
        [ -n "$attached" ] || return 0
        [ "$attached" -gt 0 ] || break
        [ $looks -gt 0 ] || return 0
        looks=$((looks - 1))
        sleep 0.05
    done
    ipcrm -m "$segment"
}
"""


def release(account: Account, pid: int, data: Path) -> None:
    """Remove the segment of a server that ran as this process on this data directory."""
    call = f'{RELEASE}\nrelease_segment "$@"'
    account.run(["sh", "-c", call, "release", str(pid), str(data), str(DETACH_SECONDS)])
