"""A self-test of a store: workers and servers are harmed, and every job is accounted for."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def run_torture(
    *,
    jobs: int,
    kills: int,
    seconds: float | None = None,
    store: str = "sqlite",
    url: str | None = None,
    dispatch: str | None = None,
    seed: int | None = None,
    as_json: bool = False,
    console: "Console | None" = None,
) -> int:
    """Kill and freeze workers while jobs flow; 0 only if nothing was lost or written stale.

    Without a URL the run has a store of its own: a SQLite file, or servers started for it, which
    are harmed too. Its data is kept when the run fails.
    """
    # Loaded late: the processes under torture import this package too, and often.
    from penstock.testing.torture.ground import StoreKind
    from penstock.testing.torture.run import torture

    kind = StoreKind(store)
    return torture(
        jobs, kills, seconds, kind, url, dispatch, seed, as_json=as_json, console=console
    )
