"""`penstock audit`: who did what, and the proof that nobody changed the record."""

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli import exits
from penstock.cli.output import JsonFlag, console, parse_span, plain, table, write_json
from penstock.cli.root import say
from penstock.cli.session import ask, ask_now
from penstock.model.wording import ago
from penstock.operate.documents import document, entry_document

if TYPE_CHECKING:
    from rich.table import Table

    from penstock.model.audit import Entry
    from penstock.operate.journal import Verified
    from penstock.store.contract import Store

app = typer.Typer(no_args_is_help=True, help="See who did what, and check the record.")


@app.command("ls")
def ls(
    ctx: typer.Context,
    actor: Annotated[
        str | None, typer.Option(help="Only by this person or program: user:ann.")
    ] = None,
    action: Annotated[
        str | None, typer.Option(help="Only this action; `job` finds `job.cancel` too.")
    ] = None,
    subject: Annotated[str | None, typer.Option(help="Only about this: job:01J….")] = None,
    tenant: Annotated[str | None, typer.Option(help="Only of this tenant.")] = None,
    since: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Only newer than this: 2h, 7d.")
    ] = None,
    before: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Older than this entry.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = 20,
    as_json: JsonFlag = False,
) -> None:
    """List what operators did, newest first: ids, counts and keyed hashes, never contents."""
    from penstock.store.contract import AuditFilter

    age = None if since is None else parse_span(since, "since")

    async def look(store: "Store") -> "list[Entry]":
        return await store.audit.find(
            AuditFilter(
                actor=actor,
                action=action,
                subject=subject,
                tenant_id=tenant,
                since=None if age is None else store.clock.now() - age,
                before=before,
                limit=limit,
            )
        )

    found, now = ask_now(ctx, look)
    if as_json:
        write_json([entry_document(entry) for entry in found])
    elif found:
        out = console()
        out.print(entry_table(found, now))
        if len(found) == limit:
            out.print(f"[dim]Older ones: add --before {found[-1].seq}[/]")
    else:
        typer.echo("No entry matches.")


@app.command("verify")
def verify(
    ctx: typer.Context,
    known: Annotated[
        str | None,
        typer.Option(metavar="HASH", help="The last hash of an earlier check, kept elsewhere."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Prove that no entry was changed, removed or slipped in since it was written.

    That none was cut off at the end is proved by --known.
    """
    from penstock.operate.journal import Journal

    async def look(store: "Store") -> "tuple[Verified, Entry | None]":
        return await Journal(store).verify(known), await store.audit.last()

    found, last = ask(ctx, look)
    if as_json:
        write_json(
            {
                "entries": found.entries,
                "intact": found.problem is None,
                "problem": None if found.problem is None else document(found.problem),
                "last_hash": None if last is None else last.hash,
            }
        )
    elif found.problem is None:
        typer.echo(f"The chain holds: {entries(found.entries)}.")
        if last is not None:
            typer.echo(f"Its last hash is {last.hash}.")
    if found.problem is not None:
        sentence = f"The chain breaks at entry {found.problem.seq}: {found.problem.problem}."
        raise typer.Exit(say(sentence, exits.FAILED))


def entries(number: int) -> str:
    """A number of entries, in words."""
    return "1 entry" if number == 1 else f"{number:,} entries"


def entry_table(found: "list[Entry]", now: int) -> "Table":
    """One line per entry."""
    made = table("NO#", "WHEN", "WHO", "DID", "TO", note="DETAILS")
    for entry in found:
        made.add_row(
            str(entry.seq),
            ago(entry.at, now),
            plain(entry.actor),
            plain(entry.action),
            plain(entry.subject),
            plain("" if entry.details == "{}" else entry.details),
        )
    return made
