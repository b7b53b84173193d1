"""Where the person at the keys is: which panel, which row, and what is being asked."""

from dataclasses import dataclass, field
from enum import StrEnum

from penstock.cli.top.snapshot import Snapshot


class Panel(StrEnum):
    """The parts of the screen, in the order of the tab key."""

    QUEUES = "queues"
    WORKERS = "workers"
    RUNNING = "running"
    FAILURES = "failures"


PANELS = tuple(Panel)


@dataclass
class State:
    """What the next frame shows besides the snapshot."""

    panel: Panel = Panel.QUEUES
    chosen: dict[Panel, str] = field(default_factory=dict[Panel, str])
    message: str = ""
    asking: str | None = None
    help: bool = False

    def selected(self, snapshot: Snapshot, panel: Panel | None = None) -> str | None:
        """The chosen row's name or id; the first one until somebody has moved."""
        rows = rows_of(snapshot, panel or self.panel)
        chosen = self.chosen.get(panel or self.panel)
        return chosen if chosen in rows else next(iter(rows), None)

    def move(self, snapshot: Snapshot, step: int) -> None:
        """Choose another row of the panel; a row keeps its choice when it moves."""
        rows = rows_of(snapshot, self.panel)
        selected = self.selected(snapshot)
        if selected is not None:
            place = min(max(rows.index(selected) + step, 0), len(rows) - 1)
            self.chosen[self.panel] = rows[place]

    def turn(self, step: int) -> None:
        """Go to another panel."""
        self.panel = PANELS[(PANELS.index(self.panel) + step) % len(PANELS)]


def rows_of(snapshot: Snapshot, panel: Panel) -> list[str]:
    """The names or ids of a panel's rows, as they are shown."""
    match panel:
        case Panel.QUEUES:
            return [depth.queue for depth in snapshot.queues]
        case Panel.WORKERS:
            return [worker.owner for worker in snapshot.workers]
        case Panel.RUNNING:
            return [job.id for job in snapshot.running]
        case Panel.FAILURES:
            return [letter.job_id for letter in snapshot.dead]
