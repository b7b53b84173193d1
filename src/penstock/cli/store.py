"""`penstock migrate`, `backup` and `restore`: the store as a whole."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.extensions import AppOption
from penstock.cli.output import JsonFlag, YesFlag, confirm, progress_bars, write_json
from penstock.cli.root import NotFound, Refused
from penstock.cli.session import (
    asked,
    bare_app,
    load,
    operate_on,
    place_of,
    refuse_missing,
    run,
    session,
)
from penstock.model.wording import counted

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.store.contract import Store


def migrate(
    ctx: typer.Context,
    as_sql: Annotated[
        bool, typer.Option("--sql", help="Print the SQL for a PostgreSQL database instead.")
    ] = False,
    as_json: JsonFlag = False,
) -> None:
    """Create the store, or bring its tables up to date."""
    from penstock.model.redact import redact
    from penstock.store.open import open_store

    settings = session(ctx).settings
    url = settings.url
    if as_sql:
        typer.echo(printed(url), nl=False)
        return
    place = place_of(url)

    async def work(store: "Store") -> tuple[int, int]:
        try:
            return await store.migrate()
        finally:
            await store.close()

    before, after = run(work(open_store(url, allow_volatile=settings.allow_volatile)))
    theirs = run(_migrate_extensions(bare_app(ctx)))
    if as_json:
        write_json({"url": redact(url), "before": before, "after": after, "extensions": theirs})
    elif before == 0:
        typer.echo(f"Created {place} with schema version {after}.")
    elif before == after:
        typer.echo(f"{place} is up to date: schema version {after}.")
    else:
        typer.echo(f"Migrated {place} from schema version {before} to {after}.")


async def _migrate_extensions(app: "Penstock") -> dict[str, int]:
    """Bring up to date the tables of extensions that are named, or that have some already.

    What their followers are told of is recorded from now on.
    """
    from penstock.app.transact import make_tables
    from penstock.outbox.extension import TABLES as OUTBOX
    from penstock.upkeep.extensions import follow

    app.extensions.enable_installed()
    async with app:
        await follow(app)
        store = (app.beside or app.store).tables
        if store is None:
            return {}
        wanted = {extension.name for extension in app.extensions} | (await store.versions()).keys()
        for name in sorted(wanted):
            extension = app.extensions.find(name)
            if extension is None or extension.tables is None:
                continue
            if extension.tables is not OUTBOX or app.beside is not None:
                await make_tables(app, extension.tables)
        return await store.versions()


def erase(
    ctx: typer.Context,
    tenant: Annotated[str | None, typer.Option(help="All that is this tenant's.")] = None,
    person: Annotated[
        str | None, typer.Option(help="All that is this person's, within the tenant if given.")
    ] = None,
    target: AppOption = None,
    yes: YesFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Erase what belongs to a tenant or a person: jobs, schedules, rows of extensions."""
    from penstock.operate.erase import erase as take_away

    whose = " of ".join(word for word in (person, tenant) if word)
    if whose:  # one that names nobody is refused anyway
        confirm(f"Erase all that is {whose}'s? It cannot be brought back.", yes=yes)
    app = bare_app(ctx) if target is None else load(ctx, target)
    app.extensions.enable_installed()
    found = operate_on(
        app,
        lambda operator: take_away(
            operator.app, tenant=tenant, person=person, actor=operator.actor
        ),
    )
    if as_json:
        write_json({"tenant": tenant, "person": person, "erased": found.parts})
    elif found.parts:
        told = ", ".join(f"{count:,} {name}" for name, count in found.parts.items())
        typer.echo(f"Erased: {told}. Copies of the store still hold them until they are deleted.")
        for remark in found.remarks:
            typer.echo(f"Left to do: {remark}.")
    else:
        typer.echo("There was nothing to erase.")


def printed(url: str) -> str:
    """The SQL that makes a schema, for whoever may not let penstock do it."""
    from penstock.model.redact import redact

    if not url.startswith(("postgresql:", "postgres:")):
        raise Refused(
            f"Option 'url' is {redact(url)!r}, and only a PostgreSQL store is made of SQL that "
            "somebody else may run; leave --sql out, or name a postgresql:// URL."
        )
    try:
        from penstock.store.postgres.connect import address_of
        from penstock.store.postgres.migrate import sql_of
    except ModuleNotFoundError as error:
        from penstock.model.errors import MissingExtra

        raise MissingExtra("postgres", error.name) from error
    return sql_of(address_of(url).schema)


def backup(
    ctx: typer.Context,
    target: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="A new file, or a folder for one named by the time."),
    ],
    keep: Annotated[
        int | None,
        typer.Option("--keep", min=1, help="In a folder, delete all but so many of the newest."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Copy the store, of whatever kind, into one file while it runs, and verify the copy."""
    from penstock.model.clock import SystemClock
    from penstock.operate import backup as copies
    from penstock.operate.tables import opened_beside
    from penstock.store.open import open_store

    settings = session(ctx).settings
    folder = target if target.is_dir() else None
    if folder is not None:
        target = copies.dated(folder, SystemClock().now())
    elif keep is not None:
        raise Refused(f"Option '--keep' needs a folder to keep copies in, and {target} is none.")
    if target.exists():
        raise Refused(f"There is already a file {target}; name a new one.")
    with progress_bars() as show:

        def tell(part: str, done: int, total: int) -> None:
            if total:
                show(str(part), done, total)

        async def copy(store: "Store") -> int:
            beside = settings.tables if store.tables is None else None
            if beside is not None:
                await refuse_missing(open_store(beside))
            async with opened_beside(beside, None) as tables:
                known = bare_app(ctx).extensions.known()
                place = target.absolute()
                return await copies.backup(store, place, beside=tables, extensions=known, show=tell)

        jobs = run(
            asked(
                settings.url,
                copy,
                # Even one that was moved away: taking a copy risks nothing.
                moving=True,
            )
        )
    # Only now that the new one is verified and in its place.
    old = copies.delete_old(folder, keep) if folder is not None and keep is not None else []
    size = target.stat().st_size
    if as_json:
        gone = [str(file) for file in old]
        write_json({"file": str(target), "jobs": jobs, "bytes": size, "deleted": gone})
    else:
        went = f" Deleted {counted(len(old), 'older copy')}.".replace("copys", "copies")
        told = f"Copied {counted(jobs, 'job')} to {target} ({size / 1e6:.1f} MB), verified."
        typer.echo(told + (went if old else ""))


def restore(
    ctx: typer.Context,
    copy: Annotated[Path, typer.Argument(metavar="FILE", help="A copy made by `penstock backup`.")],
    yes: YesFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Put a verified copy in the place of a SQLite store, or into an empty one of another kind."""
    from penstock.operate.backup import restore as put_back

    settings = session(ctx).settings
    url = settings.url
    place = place_of(url)
    if not copy.exists():
        raise NotFound(f"There is no file {copy} to restore from.")
    if url.startswith("sqlite:") and Path(place).exists():
        confirm(f"Replace {place} by {copy}? What is in it now is lost.", yes=yes)
    known = bare_app(ctx).extensions.known()
    jobs = run(put_back(copy.absolute(), url, tables=settings.tables, extensions=known))
    if as_json:
        write_json({"store": place, "jobs": jobs})
    else:
        typer.echo(f"Restored {counted(jobs, 'job')} from {copy} to {place}.")
