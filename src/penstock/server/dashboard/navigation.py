"""The pages there are, and what they offer to do."""

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from penstock.model.states import Status
from penstock.operate.jobs import STARTS_FROM, BulkAction
from penstock.server.access.identity import Identity, Scope
from penstock.server.state import Server


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


class Page(Struct, frozen=True):
    """An entry of the navigation; `whole` ones concern the whole installation, not one tenant."""

    path: str
    title: str
    whole: bool = False
    scope: Scope = Scope.READ
    count: int = 0
    bad: bool = False


PAGES = (
    Page("", "Overview"),
    Page("jobs", "Jobs"),
    Page("dead", "Dead letters"),
    Page("schedules", "Schedules"),
    Page("queues", "Queues", whole=True),
    Page("workers", "Workers", whole=True),
    Page("audit", "Audit log"),
    Page("access", "Access", whole=True, scope=Scope.ADMIN),
    Page("api", "API"),
)


LAST = 3
"""So many pages of ours stand behind those of others: who did what, who may, and the API."""


class Group(Struct, frozen=True):
    """Pages that belong together; ours have no title."""

    name: str
    title: str
    pages: list[Page]

    @property
    def bad(self) -> int:
        """What is wrong in it, seen while it is folded."""
        return sum(page.count for page in self.pages if page.bad)


async def groups_for(server: Server, caller: Identity) -> list[Group]:
    """The pages a caller may open; counts are for those who may see the whole."""
    groups = _groups(server)
    bound = caller.tenant_id is not None
    counts: Mapping[str, tuple[int, bool]] = {}
    if not bound:
        seen = await server.summary.get()
        counts = {
            "jobs": (seen.busy, False),
            "dead": (seen.dead, seen.dead > 0),
            "workers": (seen.workers, False),
            **seen.counts,
        }
    shown = [
        Group(
            group.name,
            group.title,
            [
                replace(page, count=count, bad=bad)
                for page in group.pages
                if caller.may(page.scope) and not (bound and page.whole)
                for count, bad in (counts.get(page.path, (0, False)),)
            ],
        )
        for group in groups
    ]
    return [group for group in shown if group.pages]


def _groups(server: Server) -> list[Group]:
    """Our pages, with those of extensions that have no title; then a group for each other."""
    ours = list(PAGES)
    groups = [Group("penstock", "", ours)]
    for each in server.app.extensions:
        pages = [Page(p.path, p.title, p.whole, Scope(p.scope)) for p in each.pages if p.title]
        if each.title:
            groups.append(Group(each.name, each.title, pages))
        else:
            ours[-LAST:-LAST] = pages
    return groups
