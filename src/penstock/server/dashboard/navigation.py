"""The pages there are, with counts beside them."""

from msgspec import Struct

from penstock.server.access.identity import Identity
from penstock.server.access.scopes import Scope
from penstock.server.state import Server


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
    Page("alerts", "Alerts", whole=True),
    Page("audit", "Audit log"),
    Page("access", "Access", whole=True, scope=Scope.ADMIN),
)


async def pages_for(server: Server, caller: Identity) -> list[Page]:
    """The pages a caller may open; counts are for those who may see the whole."""
    bound = caller.tenant_id is not None
    open_to = [p for p in PAGES if caller.may(p.scope) and not (bound and p.whole)]
    if bound:
        return open_to
    seen = await server.glance.get()
    counts = {
        "jobs": (seen.busy, False),
        "dead": (seen.dead, seen.dead > 0),
        "workers": (seen.workers, False),
        "alerts": (len(seen.firing), bool(seen.firing)),
    }
    return [
        Page(p.path, p.title, p.whole, p.scope, *counts.get(p.path, (0, False))) for p in open_to
    ]
