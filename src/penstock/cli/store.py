"""`penstock migrate`, `backup` and `restore`: the store as a whole."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.confirm import YesFlag, confirm
from penstock.cli.output import JsonFlag, write_json
from penstock.cli.root import NotFound, Refused
from penstock.cli.session import ask, database_file, place_of, run, session
from penstock.model.counted import counted

if TYPE_CHECKING:
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
    if as_json:
        write_json({"url": redact(url), "before": before, "after": after})
    elif before == 0:
        typer.echo(f"Created {place} with schema version {after}.")
    elif before == after:
        typer.echo(f"{place} is up to date: schema version {after}.")
    else:
        typer.echo(f"Migrated {place} from schema version {before} to {after}.")


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
    target: Annotated[Path, typer.Argument(metavar="FILE", help="A file that does not exist yet.")],
    as_json: JsonFlag = False,
) -> None:
    """Copy the store while it runs, and verify the copy."""
    if target.exists():
        raise Refused(f"There is already a file {target}; name a new one.")
    jobs = ask(ctx, lambda store: store.backup(target.absolute()))
    if as_json:
        write_json({"file": str(target), "jobs": jobs, "bytes": target.stat().st_size})
    else:
        size = target.stat().st_size / 1e6
        typer.echo(f"Copied {counted(jobs, 'job')} to {target} ({size:.1f} MB), verified.")


def restore(
    ctx: typer.Context,
    copy: Annotated[Path, typer.Argument(metavar="FILE", help="A copy made by `penstock backup`.")],
    yes: YesFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Put a verified copy in the store's place; stop the workers first."""
    from penstock.store.sqlite.backup import restore as put_back

    target = database_file(session(ctx).settings.url)
    if not copy.exists():
        raise NotFound(f"There is no file {copy} to restore from.")
    if target.exists():
        confirm(f"Replace {target} by {copy}? What is in it now is lost.", yes=yes)
    jobs = put_back(copy.absolute(), target)
    if as_json:
        write_json({"file": str(target), "jobs": jobs})
    else:
        typer.echo(f"Restored {counted(jobs, 'job')} from {copy} to {target}.")
