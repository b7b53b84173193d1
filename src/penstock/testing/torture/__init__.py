"""A self-test of a store: real workers are killed and frozen, and every job is accounted for."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def run_torture(
    *,
    jobs: int,
    kills: int,
    seconds: float | None = None,
    url: str | None = None,
    seed: int | None = None,
    as_json: bool = False,
    console: "Console | None" = None,
) -> int:
    """Kill and freeze workers while jobs flow; 0 only if nothing was lost or written stale.

    Without a URL the run has a SQLite file of its own, which is kept when the run fails.
    """
    # Loaded late: the processes under torture import this package too, and often.
    from penstock.testing.torture.run import torture

    return torture(jobs, kills, seconds, url, seed, as_json=as_json, console=console)
