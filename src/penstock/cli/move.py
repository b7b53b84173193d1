"""`penstock move` and `reopen`: a whole installation into another store, and the way back."""

from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli import exits
from penstock.cli.output import JsonFlag, YesFlag, confirm, progress_bars, write_json
from penstock.cli.root import say
from penstock.cli.session import actor, bare_app, run, session
from penstock.model.wording import counted

if TYPE_CHECKING:
    from collections.abc import Mapping

    from penstock.extension import Extension
    from penstock.operate.move import Moved, Reopening


def move(
    ctx: typer.Context,
    source: Annotated[str, typer.Argument(metavar="FROM", help="The URL of the store to move.")],
    target: Annotated[
        str, typer.Argument(metavar="TO", help="The URL of an empty store, or of none yet.")
    ],
    keep: Annotated[
        bool, typer.Option("--keep", help="Leave FROM in use; both then hold the same jobs.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Ignore workers that seem to be alive.")
    ] = False,
    replace: Annotated[
        bool,
        typer.Option(
            "--replace", help="Empty TO first, if its jobs were moved to FROM or it has none."
        ),
    ] = False,
    abandon: Annotated[
        bool,
        typer.Option("--abandon", help="Give up an interrupted move: empty TO, use FROM again."),
    ] = False,
    tables_from: Annotated[
        str | None,
        typer.Option(help="Where tables of extensions are, if FROM has none.", show_default=False),
    ] = None,
    tables_to: Annotated[
        str | None,
        typer.Option(help="Where they are to go, if TO has none.", show_default=False),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Move everything into another store; interrupted, run it again and it goes on."""
    from penstock.model.redact import without_password
    from penstock.operate import move as moving
    from penstock.operate.tables import Places

    old, new = without_password(source), without_password(target)
    known = bare_app(ctx).extensions.known()
    tables = Places(source=tables_from, target=tables_to, known=known)
    if abandon:
        run(moving.abandon(source, target, tables=tables))
        if as_json:
            write_json({"from": old, "to": new, "abandoned": True})
        else:
            typer.echo(f"Gave up the move: {new} is empty, and {old} can be used again.")
        return
    totals: dict[str, int] = {}
    try:
        with progress_bars() as show:

            def tell(part: str, done: int, total: int) -> None:
                totals[str(part)] = total
                if total:
                    show(str(part), done, total)

            moved = run(
                moving.move(
                    source,
                    target,
                    keep=keep,
                    force=force,
                    replace=replace,
                    allow_volatile=session(ctx).settings.allow_volatile,
                    tables=tables,
                    show=tell,
                )
            )
    except KeyboardInterrupt:
        code = say("interrupted; run the same command again and it goes on.", exits.INTERRUPTED)
        raise typer.Exit(code) from None
    files = _files(known, totals)
    if as_json:
        write_json({"from": old, "to": new, "kept": keep, **_document(moved), "files": files})
        return
    typer.echo(_sentence(old, new, moved, keep=keep))
    for which, count in files.items():
        typer.echo(
            f"{counted(count, 'file')} {which} did not move: copy them if another machine is to "
            "read them.\n  `penstock doctor` there says which are missing."
        )


def reopen(
    store: Annotated[
        str, typer.Argument(metavar="URL", help="The URL of a store that was moved away.")
    ],
    moved_to: Annotated[
        str | None,
        typer.Option("--moved-to", help="Where it was moved, with the password, to look there."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Even if the jobs are still where they were moved.")
    ] = False,
    yes: YesFlag = False,
    as_json: JsonFlag = False,
) -> None:
    """Use a store again that was moved away, because the one it was moved to is lost."""
    from penstock.model.redact import without_password
    from penstock.model.wording import listed
    from penstock.operate import move as moving
    from penstock.operate.move import counted_parts

    place = without_password(store)

    def ask(found: "Reopening") -> None:
        holds = listed(counted_parts(found.tally)) or "nothing"
        confirm(
            f"Use {place} again? It holds {holds}, as on the day it was moved to "
            f"{found.moved_to}, which {found.finding}. Jobs that were done there since are done "
            "again here, and those enqueued there since are missing.",
            yes=yes,
        )

    found = run(moving.reopen(store, moved_to=moved_to, force=force, confirm=ask, actor=actor()))
    if as_json:
        told = {"store": place, "moved_to": found.moved_to, "finding": found.finding}
        write_json({**told, "statuses": found.tally.statuses})
    else:
        typer.echo(f"{place} can be used again.")


def _files(known: "Mapping[str, Extension]", totals: "Mapping[str, int]") -> dict[str, int]:
    """How many files the moved rows stand for, by which those are."""
    tables = [table for each in known.values() if each.tables for table in each.tables.tables]
    return {
        table.files: totals[table.name]
        for table in tables
        if table.files and totals.get(table.name)
    }


def _document(moved: "Moved") -> dict[str, object]:
    tally = moved.tally
    return {
        "resumed": moved.resumed,
        "sent": moved.sent,
        "rows": moved.rows,
        "parts": {part.value: count for part, count in tally.parts.items()},
        "statuses": tally.statuses,
        "fences": tally.fences,
        "attempts": tally.attempts,
    }


def _sentence(old: str, new: str, moved: "Moved", *, keep: bool) -> str:
    from penstock.store.contract import Part

    jobs = moved.tally.parts[Part.JOBS]
    rest = sum(moved.tally.parts.values()) - jobs
    after = "stays in use" if keep else "is no longer opened"
    # A line each: a terminal breaks a long one in the middle of a URL.
    rows = f", {counted(moved.rows, 'row')} of extensions" if moved.rows else ""
    told = f"Moved {counted(jobs, 'job')}{rows} and {counted(rest, 'other record')}, verified."
    return f"{told}\n  to    {new}\n  from  {old}, which {after}"
