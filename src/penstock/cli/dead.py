"""`penstock dead`: what could not be done, and what a person decides about it."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli import exits
from penstock.cli.dead_view import (
    by_resolution,
    chosen_ids,
    ended_ids,
    group_document,
    group_table,
    known_letter,
    letters_with,
)
from penstock.cli.enqueue import read_payload
from penstock.cli.output import (
    JsonFlag,
    YesFlag,
    confirm,
    console,
    parse_span,
    plain,
    progress_bar,
    write_json,
)
from penstock.cli.root import NotFound, Refused, say
from penstock.cli.session import (
    ask,
    ask_app,
    ask_now,
    bare_app,
    full_id,
    full_ids,
    load,
    operate,
    operate_on,
    user,
)
from penstock.model.wording import counted
from penstock.operate.documents import dead_document, document

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.operate.actor import Operator
    from penstock.operate.dead import Canaries, DeadLetters, DeadView, Replay
    from penstock.operate.jobs import Requeued
    from penstock.store.contract import DeadGroup, Store

GroupId = Annotated[str, typer.Argument(metavar="GROUP", help="The group's id, or its beginning.")]


def groups(
    ctx: typer.Context,
    type_name: Annotated[str | None, typer.Option("--type", help="Only of this type.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Also groups with no open letter.")] = False,
    before: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Only groups older than this: a group's newest_id."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = 20,
    as_json: JsonFlag = False,
) -> None:
    """List dead letters by what they died of, the latest death first."""

    before = before and full_id(ctx, before)

    async def look(app: "Penstock") -> "tuple[list[DeadGroup], int]":
        found = await app.dead.groups(type_name, closed=all_, before=before, limit=limit)
        return found, app.store.clock.now()

    found, now = ask_app(bare_app(ctx), look)
    if as_json:
        write_json([group_document(group) for group in found])
    elif found:
        out = console()
        out.print(group_table(found, now))
        if found[0].open:
            out.print(f"[dim]Try a few: penstock dead replay {found[0].id} --canary 5[/]")
        if len(found) == limit:
            out.print(f"[dim]Older ones: add --before {found[-1].newest_id}[/]", soft_wrap=True)
    else:
        typer.echo("No dead letter is open.")


def replay(
    ctx: typer.Context,
    group: GroupId,
    canary: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = 5,
    wait: Annotated[
        str | None,
        typer.Option(metavar="SPAN", help="Wait this long for them; exit 1 unless all complete."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Run the newest few of a group again, to see whether the cause is gone."""
    seconds = None if wait is None else parse_span(wait, "wait") / 1000

    async def work(operator: "Operator") -> "tuple[Replay, Canaries]":
        replayed = await operator.dead.replay(group, canary)
        if seconds is not None:
            await operator.dead.wait(replayed, seconds)
        return replayed, await operator.dead.canaries(replayed.group.id)

    replayed, tried = operate(ctx, work)
    ids = [handle.id for handle in replayed.handles]
    if as_json:
        shown = {"group": replayed.group.id, "replayed": ids, "refused": replayed.refused}
        write_json(shown | (_canaries_document(tried) if wait is not None else {}))
    else:
        _tell_replay(replayed, tried if wait is not None else None)
    for sentence in replayed.refused.values():
        say(sentence, exits.WRONG)
    unproven = wait is not None and bool(tried.failed or tried.unfinished)
    raise typer.Exit(exits.FAILED if unproven else exits.WRONG if replayed.refused else exits.OK)


def release(
    ctx: typer.Context,
    group: GroupId,
    rate: Annotated[str, typer.Option(help="How fast: 10/s, 100/min.")] = "10/s",
    force: Annotated[
        bool, typer.Option("--force", help="Even if canaries failed or have not ended.")
    ] = False,
    yes: YesFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Run the rest of a group again, spread at a rate, once its canaries have completed."""
    if not force:
        found, tried = ask_app(bare_app(ctx), lambda app: _state_of(app.dead, group))
        if not (tried.completed or tried.failed or tried.unfinished) and found.open:
            many = counted(found.open, "job")
            confirm(f"No canary of group {found.id} was tried. Release {many} anyway?", yes=yes)

    async def work(operator: "Operator") -> "Requeued":
        with progress_bar("Releasing") as show:
            return await operator.dead.release(group, rate, force=force, progress=show)

    answer = operate(ctx, work)
    if as_json:
        write_json({"released": answer.done, "refused": answer.refused})
    elif answer.done or answer.refused:
        typer.echo(f"Released {counted(len(answer.done), 'job')} at {rate}.")
    else:
        typer.echo("Nothing of this group is open; nothing was released.")
    for sentence in answer.refused.values():
        say(sentence, exits.WRONG)
    raise typer.Exit(exits.WRONG if answer.refused else exits.OK)


def amend(
    ctx: typer.Context,
    job_id: Annotated[str, typer.Argument(metavar="ID", help="The job's id, or its beginning.")],
    target: Annotated[
        str, typer.Option("--app", metavar="MODULE:APP", help="The application that knows it.")
    ],
    arguments: Annotated[
        str | None,
        typer.Option("--args", metavar="JSON", help="Arguments to change, by name; @FILE or -."),
    ] = None,
    payload: Annotated[
        str | None, typer.Option(metavar="JSON", help="All arguments; @FILE or -.")
    ] = None,
    requeue: Annotated[bool, typer.Option("--requeue", help="Run it again with them.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Correct the arguments of a dead job, checked against its type."""
    if (arguments is None) == (payload is None):
        raise Refused("Say what to change: --args or --payload, and only one of them.")
    changes = None if arguments is None else _object(read_payload(arguments))
    text = None if payload is None else read_payload(payload)
    job_id = full_id(ctx, job_id)
    job = operate_on(
        load(ctx, target),
        lambda operator: operator.dead.amend(job_id, changes, payload=text, requeue=requeue),
    )
    if as_json:
        write_json(document(job))
    elif requeue:
        typer.echo(f"{job.id} has new arguments and is queued again.")
    else:
        typer.echo(f"{job.id} has new arguments; run it with `penstock dead requeue {job.id}`.")


async def _state_of(dead: "DeadLetters", group: str) -> "tuple[DeadGroup, Canaries]":
    found = await dead.group(group)
    return found, await dead.canaries(found.id)


def _object(text: str) -> dict[str, Any]:
    import json

    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused(f"Option 'args' is not JSON ({error}); quote it for the shell.") from error
    if not isinstance(found, dict):
        raise Refused("Option 'args' must be an object of arguments by name.")
    return found


def _canaries_document(tried: "Canaries") -> dict[str, Any]:
    return {
        "completed": tried.completed,
        "failed": tried.failed,
        "unfinished": tried.unfinished,
    }


def _tell_replay(replayed: "Replay", tried: "Canaries | None") -> None:
    out = console()
    group = replayed.group
    if not replayed.handles and not replayed.refused:
        out.print("Nothing of this group is open; nothing was replayed.")
    for handle in replayed.handles:
        out.print(f"Replayed {handle.id}.", soft_wrap=True)
    if tried is None:
        out.print(f"[dim]When they have completed: penstock dead release {group.id}[/]")
        return
    out.print(
        f"[green]{len(tried.completed)} completed[/], [red]{len(tried.failed)} failed[/], "
        f"{len(tried.unfinished)} not ended."
    )
    if not tried.failed and not tried.unfinished:
        out.print(f"[dim]Release the rest: penstock dead release {group.id}[/]")


app = typer.Typer(no_args_is_help=True, help="Look at dead letters and decide about them.")

OptionalIds = Annotated[
    list[str] | None,
    typer.Argument(metavar="ID", help="The jobs' ids, or their beginnings.", show_default=False),
]
TypeOption = Annotated[str | None, typer.Option("--type", help="All of this type.")]
OpenGroup = Annotated[str | None, typer.Option("--group", help="All open ones of this group.")]
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
    before = before and full_id(ctx, before)
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
    job_id: Annotated[str, typer.Argument(metavar="ID", help="The job's id, or its beginning.")],
    as_json: JsonFlag = False,
) -> None:
    """Show a dead letter: why, with what arguments, every execution, and where it broke."""
    from penstock.cli.dead_view import show_letter, view_document
    from penstock.operate.dead import view

    job_id = full_id(ctx, job_id)

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
    answer = operate(ctx, lambda operator: operator.jobs.requeue_each(ids))
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
    notes: Annotated[str | None, typer.Option(help="What you found out.")] = None,
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
    job_ids = full_ids(ctx, job_ids or [])
    state, who, which = Resolution(as_), by or user(), group or job_ids
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
        str | None,
        typer.Option(metavar="SPAN", help="Only those that died longer ago than this: 30d."),
    ] = None,
    all_: AllFlag = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count them.")] = False,
    yes: YesFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Delete dead letters and their jobs for good: by id, by a filter, or all.

    What was requeued and has not ended is left alone.
    """
    from penstock.operate.dead import LetterFields

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
