"""What a page offers to do with a job."""

from msgspec import Struct

from penstock.model.states import Status, sources


class Action(Struct, frozen=True):
    """A button: its name, what it says, and from which states it can be pressed."""

    name: str
    label: str
    done: str
    starts_from: frozenset[Status]
    danger: bool = False


ACTIONS = (
    Action(
        "cancel",
        "Cancel",
        "cancelled",
        frozenset({*sources("cancel"), Status.IN_PROGRESS}),
        danger=True,
    ),
    Action("pause", "Pause", "paused", frozenset(sources("pause"))),
    Action("resume", "Resume", "resumed", frozenset(sources("resume"))),
    Action("requeue", "Requeue", "requeued", frozenset(sources("requeue"))),
)

BY_NAME = {action.name: action for action in ACTIONS}


def offered(status: Status) -> list[Action]:
    """The actions that a job in this state can take."""
    return [action for action in ACTIONS if status in action.starts_from]
