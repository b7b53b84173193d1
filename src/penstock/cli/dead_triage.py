"""`penstock dead groups`, `replay`, `release` and `amend`: dead letters many at a time."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from penstock.cli import exits
from penstock.cli.confirm import YesFlag, confirm
from penstock.cli.dead_view import group_document, group_table
from penstock.cli.enqueue import read_payload
from penstock.cli.output import JsonFlag, console, write_json
from penstock.cli.progress import progress_bar
from penstock.cli.root import Refused, say
from penstock.cli.session import ask_app, bare_app, load, operate, operate_on
from penstock.cli.values import parse_span
from penstock.client.documents import document
from penstock.model.counted import counted

if TYPE_CHECKING:
    from penstock.client.app import Penstock
    from penstock.client.dead import Canaries, Replay, Triage
    from penstock.client.operator import Operator
    from penstock.client.requeue import Requeued
    from penstock.store.contract import DeadGroup

GroupId = Annotated[
    str, typer.Argument(metavar="GROUP", help="A group's id, or an unmistakable beginning of it.")
]


def groups(
    ctx: typer.Context,
    type_name: Annotated[str | None, typer.Option("--type", help="Only of this type.")] = None,
    all_: Annotated[bool, typer.Option("--all", help="Also those with no open letter.")] = False,
    before: Annotated[
        str | None,
        typer.Option(metavar="ID", help="Died earlier than this: a group's newest_id."),
    ] = None,
    limit: Annotated[int, typer.Option(min=1, max=1000, help="How many.")] = 20,
    as_json: JsonFlag = False,
) -> None:
    """List dead letters by what they died of, the latest death first."""

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
            await operator.app.dead.wait(replayed, seconds)
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
    rate: Annotated[
        str, typer.Option(help="How many fall due in a while: 10/s, 100/min.")
    ] = "10/s",
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
    job_id: Annotated[str, typer.Argument(metavar="ID", help="The job's id.")],
    target: Annotated[
        str, typer.Option("--app", metavar="MODULE:APP", help="The application that knows it.")
    ],
    arguments: Annotated[
        str | None,
        typer.Option("--args", metavar="JSON", help="Arguments to change, by name; @FILE or -."),
    ] = None,
    payload: Annotated[
        str | None, typer.Option(metavar="JSON", help="All arguments anew; @FILE or -.")
    ] = None,
    requeue: Annotated[bool, typer.Option("--requeue", help="Run it again with them.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Correct the arguments of a dead job, checked against its type."""
    if (arguments is None) == (payload is None):
        raise Refused("Say what to change: --args or --payload, and only one of them.")
    changes = None if arguments is None else _object(read_payload(arguments))
    text = None if payload is None else read_payload(payload)
    job = operate_on(
        load(ctx, target),
        lambda operator: operator.dead.amend(job_id, changes, payload=text, requeue=requeue),
    )
    if as_json:
        write_json(document(job))
    elif requeue:
        typer.echo(f"{job.id} has new arguments and runs again.")
    else:
        typer.echo(f"{job.id} has new arguments; run it with `penstock dead requeue {job.id}`.")


async def _state_of(triage: "Triage", group: str) -> "tuple[DeadGroup, Canaries]":
    found = await triage.group(group)
    return found, await triage.canaries(found.id)


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
