"""What a page offers to do with a job."""

from msgspec import Struct

from penstock.client.operating.bulk import STARTS_FROM, BulkAction
from penstock.model.states import Status


class Action(Struct, frozen=True):
    """A button: its name, what it says, and what it has done afterwards."""

    name: BulkAction
    label: str
    done: str
    danger: bool = False

    @property
    def starts_from(self) -> tuple[Status, ...]:
        """The states in which a job can take it."""
        return STARTS_FROM[self.name]


ACTIONS = (
    Action(BulkAction.CANCEL, "Cancel", "cancelled", danger=True),
    Action(BulkAction.PAUSE, "Pause", "paused"),
    Action(BulkAction.RESUME, "Resume", "resumed"),
    Action(BulkAction.REQUEUE, "Requeue", "requeued"),
)

BY_NAME: dict[str, Action] = {action.name: action for action in ACTIONS}


def offered(status: Status) -> list[Action]:
    """The actions that a job in this state can take."""
    return [action for action in ACTIONS if status in action.starts_from]
