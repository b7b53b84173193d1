"""`penstock dead`: what could not be done, and what a person decides about it."""

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli import exits
from penstock.cli.confirm import YesFlag, confirm
from penstock.cli.dead_choice import (
    by_resolution,
    chosen_ids,
    ended_ids,
    known_letter,
    letters_with,
)
from penstock.cli.dead_triage import amend, groups, release, replay
from penstock.cli.output import JsonFlag, console, plain, write_json
from penstock.cli.root import NotFound, Refused, say
from penstock.cli.session import ask, ask_now, operate, user
from penstock.cli.values import parse_span
from penstock.client.documents import dead_document
from penstock.model.counted import counted

if TYPE_CHECKING:
    from penstock.client.dead import DeadView
    from penstock.store.contract import Store

app = typer.Typer(no_args_is_help=True, help="Look at dead letters and decide about them.")

OptionalIds = Annotated[
    list[str] | None, typer.Argument(metavar="ID", help="The jobs' ids.", show_default=False)
]
TypeOption = Annotated[str | None, typer.Option("--type", help="All of this type.")]
OpenGroup = Annotated[
    str | None, typer.Option("--group", help="All open ones of this group instead.")
]
AllFlag = Annotated[bool, typer.Option("--all", help="All of them.")]


@app.command("ls")
def ls(
    ctx: typer.Context,
    type_name: Annotated[str | None, typer.Option("--type", help="Only of this type.")] = None,
    resolution: Annotated[
        str, typer.Option(help="open, pending, investigating, resolved, ignored or any.")
    ] = "open",
    before: Annotated[str | None, typer.Option(metavar="ID", help="Older than this one.")] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = 20,
    as_json: JsonFlag = False,
) -> None:
    """List dead letters, newest first; the open ones, unless told otherwise."""
    from penstock.cli.dead_view import dead_table

    wanted = by_resolution(resolution)

    found, now = ask_now(ctx, lambda store: letters_with(store, wanted, type_name, before, limit))
    if as_json:
        write_json([dead_document(letter) for letter in found])
    elif found:
        out = console()
        out.print(dead_table(found, now))
        if len(found) == limit:
            out.print(f"[dim]Older ones: add --before {found[-1].job_id}[/]", soft_wrap=True)
    elif resolution == "open" and type_name is None:
        typer.echo("No dead letter is open.")
    else:
        typer.echo("No dead letter matches; try --resolution any.")


@app.command("show")
def show(
    ctx: typer.Context,
    job_id: Annotated[str, typer.Argument(metavar="ID", help="The job's id.")],
    as_json: JsonFlag = False,
) -> None:
    """Show a dead letter: why, with what arguments, every execution, and where it broke."""
    from penstock.cli.dead_view import show_letter, view_document
    from penstock.client.dead import view

    async def look(store: "Store") -> "DeadView":
        await known_letter(store, job_id)
        return await view(store, job_id)

    found, now = ask_now(ctx, look)
    if as_json:
        write_json(view_document(found))
    else:
        show_letter(console(), found, now)


app.command("groups")(groups)
app.command("replay")(replay)
app.command("release")(release)
app.command("amend")(amend)


@app.command("requeue")
def requeue(
    ctx: typer.Context,
    job_ids: OptionalIds = None,
    type_name: TypeOption = None,
    all_: AllFlag = False,
    yes: YesFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Run dead jobs again with a fresh retry budget: by id, by type, or all."""
    ids = chosen_ids(ctx, job_ids, type_name, all_)
    if all_ and ids:
        confirm(f"Run {len(ids):,} dead jobs again?", yes=yes)
    answer = operate(ctx, lambda operator: operator.bulk.requeue(ids))
    if as_json:
        write_json({"requeued": answer.done, "refused": answer.refused})
    elif ids:
        typer.echo(f"Requeued {len(answer.done):,} of {len(ids):,}.")
    else:
        typer.echo("No open dead letter matches; nothing was requeued.")
    for sentence in answer.refused.values():
        say(sentence, exits.WRONG)
    raise typer.Exit(exits.WRONG if answer.refused else exits.OK)


@app.command("resolve")
def resolve(
    ctx: typer.Context,
    job_ids: OptionalIds = None,
    group: OpenGroup = None,
    as_: Annotated[
        str, typer.Option("--as", help="pending, investigating, resolved or ignored.")
    ] = "resolved",
    notes: Annotated[str | None, typer.Option(help="What was found out.")] = None,
    by: Annotated[str | None, typer.Option(help="Who.", show_default="this user")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Record how far you have got with dead letters."""
    from penstock.store.contract import Resolution

    states = [state.value for state in Resolution]
    if as_ not in states:
        raise Refused(f"Option 'as' is {as_!r}, but it must be one of: {', '.join(states)}.")
    if bool(job_ids) == (group is not None):
        raise Refused("Say which: ids or --group GROUP, and only one of them.")
    state, who, which = Resolution(as_), by or user(), group or job_ids or []
    found = operate(ctx, lambda it: it.dead.resolve(which, state, notes=notes, by=who))
    if as_json:
        write_json({"resolution": state.value, "ids": found})
    else:
        for job_id in found:
            typer.echo(f"{job_id} is {state.value}.")
    missing = [job_id for job_id in job_ids or () if job_id not in found]
    if missing:
        raise NotFound(f"There is no dead letter of {', '.join(missing)}; see `penstock dead ls`.")


@app.command("purge")
def purge(
    ctx: typer.Context,
    job_ids: OptionalIds = None,
    type_name: Annotated[str | None, typer.Option("--type", help="Only of this type.")] = None,
    group: Annotated[str | None, typer.Option("--group", help="Only of this group.")] = None,
    tenant: Annotated[str | None, typer.Option(help="Only of this tenant.")] = None,
    resolution: Annotated[
        str | None,
        typer.Option(
            help="Only open, pending, investigating, resolved, ignored or any.",
            show_default="any; of a group, open",
        ),
    ] = None,
    older_than: Annotated[
        str | None, typer.Option(metavar="SPAN", help="Only those that died so long ago: 30d.")
    ] = None,
    all_: AllFlag = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count them.")] = False,
    yes: YesFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Delete dead letters and their jobs for good: by id, by a filter, or all.

    What was requeued and has not ended is left alone.
    """
    from penstock.client.dead import LetterFields

    where = LetterFields(
        type_name=type_name,
        group=group,
        tenant=tenant,
        resolution=resolution or ("open" if group else "any" if all_ else None),
        older_than=None if older_than is None else parse_span(older_than, "older-than") / 1000,
    )
    given = any(part is not None for part in (type_name, group, tenant, resolution, older_than))
    if sum((bool(job_ids), given, all_)) != 1:
        raise Refused("Say which: ids, a filter such as --type TYPE, or --all; only one of them.")
    if job_ids:
        named = chosen_ids(ctx, job_ids, None, False, closed=True)
        ids, alive = ask(ctx, lambda store: ended_ids(store, named))
        if alive:
            raise Refused(f"Job {alive[0]} was requeued and has not ended; cancel it first.")
    else:
        ids = operate(ctx, lambda operator: operator.dead.matching(**where))
    if dry_run:
        if as_json:
            write_json({"matched": len(ids)})
        else:
            typer.echo(f"{counted(len(ids), 'dead letter')} would be deleted.")
        return
    if ids:
        many = (
            f"{len(ids):,} dead letters" if len(ids) > 1 else f"the dead letter of {plain(ids[0])}"
        )
        confirm(f"Delete {many} for good?", yes=yes)
    purged = operate(ctx, lambda operator: operator.dead.purge(ids))
    if as_json:
        write_json({"purged": purged})
    else:
        typer.echo(f"Purged {purged:,}.")
