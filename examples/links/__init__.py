"""Watch links: people add them, a job looks whether they answer, and somebody hears if not."""

from typing import Any
from urllib.request import urlopen

from msgspec import Struct

from penstock import Blueprint, Context, Penstock
from penstock.extension import (
    Body,
    Command,
    Extension,
    Measure,
    Measured,
    Metric,
    Page,
    Pass,
    Reading,
    Request,
    Route,
    Rule,
    Severity,
    Table,
    Tables,
    Tile,
)

jobs = Blueprint()


class LinkSettings(Struct, frozen=True, forbid_unknown_fields=True):
    """`[penstock.links]` in TOML, or `PENSTOCK_LINKS__TIMEOUT`."""

    timeout: float = 10
    stale_after: float = 3_600


class NewLink(Struct, forbid_unknown_fields=True):
    """A link that somebody wants to have watched."""

    url: str
    owner: str = ""


class Link(Struct):
    """A link, and how it was when it was last looked at."""

    url: str
    owner: str
    state: str
    checked_at: int | None


@jobs.job(name="links.check", queue="links", max_retries=2)
def check(ctx: Context, tenant: str, url: str) -> str:
    """Ask a link for an answer and write down whether it came."""
    try:
        with urlopen(url, timeout=ctx.app.extensions.settings("links").timeout) as answer:
            state = "ok" if answer.status < 400 else "broken"
    except (OSError, ValueError):
        state = "broken"
    ctx.sync.transact(lambda tx: tx.links.run("checked", (state, tx.now, tenant, url)))
    return state


@jobs.scheduled(name="links.sweep", cron="0 4 * * *")
@jobs.job(name="links.sweep", queue="links")
async def sweep(ctx: Context) -> int:
    """Look at every link once a night."""
    return await ctx.transact(lambda tx: _enqueue(tx, tx.now + 1))


async def add(app: Penstock, url: str, owner: str = "", tenant: str = "") -> str:
    """Watch a link from now on: it is written down and looked at, in one commit."""

    def work(tx: Any) -> None:
        tx.links.run("add", (tenant, url, owner))
        tx.enqueue(check.options(tenant=tenant).new(tenant, url))

    await app.transact(work)
    return f"{url} is watched."


async def ls(app: Penstock, tenant: str | None = None) -> list[Link]:
    """List the links, and how they were when they were last looked at."""
    rows = await app.read(lambda tx: tx.links.rows("all", {"tenant": tenant}))
    return [Link(*row) for row in rows]


async def look_again(app: Penstock) -> None:
    """Enqueue a look at every link that nobody has looked at for too long."""
    stale_ms = int(app.extensions.settings("links").stale_after * 1000)
    await app.transact(lambda tx: _enqueue(tx, tx.now - stale_ms))


def _enqueue(tx: Any, before: int) -> int:
    stale = tx.links.rows("stale", (before,))
    calls = [check.options(key=url, tenant=tenant).new(tenant, url) for tenant, url in stale]
    tx.enqueue_many(calls)
    return len(calls)


async def states(app: Penstock) -> dict[str, int]:
    """How many links there are in each state."""
    return dict(await app.read(lambda tx: tx.links.rows("states")))


async def broken(app: Penstock, _: Rule) -> Reading:
    """How many links are broken."""
    return Reading((await states(app)).get("broken", 0))


async def post_link(request: Request) -> Link:
    """Watch a link; a caller that is bound to a tenant watches it for that one."""
    new: NewLink = request.body
    await add(request.app, new.url, new.owner, request.tenant or "")
    return Link(new.url, new.owner, "new", None)


async def get_links(request: Request) -> list[Link]:
    """All links, or those of the caller's tenant."""
    return await ls(request.app, request.tenant)


async def show(request: Request) -> dict[str, Any]:
    """What the page needs."""
    return {"links": await ls(request.app, request.tenant)}


async def act(request: Request) -> str:
    """What the page's form does."""
    return await add(request.app, request.form["url"], request.actor, request.tenant or "")


async def figure(app: Penstock) -> int:
    """How many links are watched."""
    return sum((await states(app)).values())


extension = Extension(
    name="links",
    title="Links",
    help="Watch links and hear when one is broken.",
    blueprint=jobs,
    settings=LinkSettings,
    tables=Tables(
        extension="links",
        package=__name__,
        tables=(Table("links_links", key=("tenant", "url"), tenant="tenant", person="owner"),),
    ),
    passes=(Pass(name="look_again", every=60, run=look_again),),
    commands=(Command(name="add", run=add, writes=True), Command(name="ls", run=ls)),
    routes=(
        Route(method="GET", path="links", run=get_links, gives=list[Link]),
        Route(
            method="POST",
            path="links",
            run=post_link,
            scope="enqueue",
            body=Body.JSON,
            takes=NewLink,
            gives=Link,
            status=201,
        ),
    ),
    pages=(Page(path="links", title="Links", template="links.html", show=show, act=act),),
    templates=__name__,
    tiles=(Tile(title="Links", figure=figure, path="links"),),
    metrics=(Metric(name="watched", help="Links by state.", read=states, labels=("state",)),),
    readings=(
        Measured(
            name="broken_links", measure=Measure("links that do not answer", "links"), read=broken
        ),
    ),
    rules=(
        Rule(
            name="links_broken",
            metric="broken_links",
            threshold=0,
            severity=Severity.WARNING,
            action="See which, on the page Links.",
        ),
    ),
)
