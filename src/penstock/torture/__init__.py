"""A self-test of a store: workers and servers are harmed, and every job is accounted for."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

    from penstock.torture.ground import FindGround


def run_torture(
    *,
    jobs: int,
    kills: int,
    seconds: float | None = None,
    ground: "FindGround | None" = None,
    seed: int | None = None,
    as_json: bool = False,
    console: "Console | None" = None,
) -> int:
    """Kill and freeze workers while jobs flow; 0 only if nothing was lost or written stale.

    Without a ground the run has a SQLite file of its own. Its data is kept when the run fails.
    """
    # Loaded late: the processes under torture import this package too, and often.
    from penstock.torture.ground import new_file
    from penstock.torture.run import torture

    return torture(jobs, kills, seconds, ground or new_file, seed, as_json=as_json, console=console)
