"""Which dead letters a command means, and how people see them."""

from typing import TYPE_CHECKING, Any

import typer

from penstock.cli.output import Fitted, highlighted, lines, plain, styled, table
from penstock.cli.root import NotFound, Refused
from penstock.cli.session import ask, full_ids
from penstock.model.clock import iso
from penstock.model.failure import folded
from penstock.model.wording import ago, span
from penstock.operate.documents import dead_document, decoded, document

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from penstock.operate.dead import DeadView, Standing
    from penstock.store.contract import DeadGroup, DeadLetter, Store

PAGE = 500


def by_resolution(text: str) -> "Standing":
    """What a word for a resolution asks a store for."""
    from penstock.operate.dead import RESOLUTIONS, standing

    words = (*RESOLUTIONS, "any")
    if text not in words:
        raise Refused(
            f"Option 'resolution' is {text!r}, but it must be one of: {', '.join(words)}."
        )
    return standing(None if text == "any" else text)


async def letters_with(
    store: "Store", wanted: "Standing", type_name: str | None, before: str | None, limit: int
) -> "list[DeadLetter]":
    """A page, newest first."""
    if before is not None:
        await known_letter(store, before)
    return await store.dead.find(type=type_name, before=before, limit=limit, **wanted)


async def known_letter(store: "Store", job_id: str) -> "DeadLetter":
    """The dead letter of a job, or NotFound."""
    letter = await store.dead.get(job_id)
    if letter is None:
        raise NotFound(f"There is no dead letter of {job_id}; see `penstock dead ls`.")
    return letter


def chosen_ids(
    ctx: typer.Context,
    job_ids: list[str] | None,
    type_name: str | None,
    all_: bool,
    *,
    closed: bool = False,
) -> list[str]:
    """The ids that `ID...`, `--type` or `--all` name; exactly one of the three is needed."""
    if sum((bool(job_ids), type_name is not None, all_)) != 1:
        raise Refused("Say which: ids, --type TYPE or --all, and only one of them.")

    ids = full_ids(ctx, job_ids or [])

    async def look(store: "Store") -> list[str]:
        if ids:
            return [(await known_letter(store, job_id)).job_id for job_id in dict.fromkeys(ids)]
        return await every_id(store, type_name, closed=closed)

    return ask(ctx, look)


async def every_id(store: "Store", type_name: str | None, *, closed: bool) -> list[str]:
    """All open dead letters of a type (or any); with `closed`, those as well."""
    ids: list[str] = []
    while page := await store.dead.find(
        type=type_name, only_open=not closed, before=ids[-1] if ids else None, limit=PAGE
    ):
        ids += [letter.job_id for letter in page]
    return ids


async def ended_ids(store: "Store", ids: list[str]) -> tuple[list[str], list[str]]:
    """Those whose jobs have ended, and those that were requeued and live again."""
    alive = {
        job.id
        for start in range(0, len(ids), PAGE)
        for job in await store.reader.get(ids[start : start + PAGE])
        if not job.status.terminal
    }
    return [i for i in ids if i not in alive], [i for i in ids if i in alive]


STYLES = {"pending": "red", "investigating": "yellow", "resolved": "green", "ignored": "dim"}


def dead_table(letters: "list[DeadLetter]", now: int) -> Fitted:
    """One line per dead letter."""
    made = table("ID", "TYPE", "DIED", "ATTEMPTS#", "RESOLUTION", note="LAST ERROR")
    for letter in letters:
        made.add_row(
            letter.job_id,
            plain(letter.type),
            ago(letter.created_at, now),
            str(letter.attempts),
            resolution(letter),
            plain(letter.error or letter.reason),
        )
    return Fitted(made, "ATTEMPTS", "RESOLUTION")


def group_table(groups: "list[DeadGroup]", now: int) -> Fitted:
    """One line per group."""
    made = table("GROUP", "TYPE", "OPEN#", "ALL#", "FIRST", "LAST", note="LAST ERROR")
    for group in groups:
        made.add_row(
            group.id,
            plain(group.type),
            f"{group.open:,}",
            f"{group.count:,}",
            ago(group.first_at, now),
            ago(group.last_at, now),
            plain(group.error or ""),
        )
    return Fitted(made, "FIRST", "ALL")


def group_document(group: "DeadGroup") -> dict[str, Any]:
    """A group for scripts."""
    return {"id": group.id} | document(group)


def view_document(view: "DeadView") -> dict[str, Any]:
    """A dead letter for scripts, with its group and its traceback."""
    group = group_document(view.group)
    return dead_document(view.letter) | {
        "group": group,
        "stack": view.stack,
        "amended": decoded(view.amended),
    }


def show_letter(out: "Console", view: "DeadView", now: int) -> None:
    """A page about one dead letter."""
    from rich.table import Table

    letter = view.letter
    out.print(f"[bold]{plain(letter.type)}[/] {letter.job_id}  {resolution(letter)}")
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="dim", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in facts(view, now):
        grid.add_row(name, value)
    out.print(grid)
    snapshot = decoded(letter.snapshot)
    payload = snapshot.get("payload") if isinstance(snapshot, dict) else snapshot
    out.print("\n[dim]payload[/]")
    out.print(highlighted(payload))
    if view.amended is not None:
        out.print("\n[dim]changed since; it will run with[/]")
        out.print(highlighted(decoded(view.amended)))
    history = decoded(letter.executions)
    if isinstance(history, list) and history:
        out.print()
        out.print(history_table(sorted(history, key=lambda run: run.get("fence", 0)), now))
    if view.stack:
        out.print("\n[dim]traceback of the last failed execution[/]")
        out.print(lines(folded(view.stack).rstrip()), markup=False, soft_wrap=True)
    out.print(
        f"\n[dim]Requeue it:   penstock dead requeue {letter.job_id}\n"
        f"Its group:    penstock dead replay {view.group.id} --canary 5\n"
        f"Close it:     penstock dead resolve {letter.job_id} --notes '…'[/]",
        soft_wrap=True,
    )


def facts(view: "DeadView", now: int) -> list[tuple[str, str]]:
    """What is known of a dead letter, in the order a person asks."""
    letter, group = view.letter, view.group
    decided = letter.resolved_by and f"{plain(letter.resolved_by)}, {ago(letter.resolved_at, now)}"
    rows: list[tuple[str, str | None]] = [
        ("last error", f"[red]{plain(letter.error or letter.reason)}[/]"),
        ("error class", plain(letter.reason)),
        ("died", f"{ago(letter.created_at, now)} [dim]({iso(letter.created_at)})[/]"),
        ("queue", plain(letter.queue)),
        (
            "attempts",
            f"{letter.attempts}" + (f", rescued {letter.rescues}×" if letter.rescues else ""),
        ),
        ("group", f"{group.id}, {group.count:,} alike, {group.open:,} of them open"),
        ("fingerprint", plain(letter.fingerprint)),
        ("canary", letter.canary_of and f"replayed for group {letter.canary_of}"),
        ("notes", letter.notes and plain(letter.notes)),
        ("resolved by", decided),
    ]
    return [(name, value) for name, value in rows if value]


def history_table(history: list[dict[str, Any]], now: int) -> "Table":
    """One line per execution, oldest first."""
    made = table("EXECUTION#", "STATUS", "STARTED", "TOOK#", "CLASS", note="ERROR")
    for number, run in enumerate(history, 1):
        made.add_row(
            str(number),
            styled(str(run.get("status"))),
            ago(run.get("started_at"), now),
            span(run.get("duration_ms")),
            plain(run.get("error_class") or ""),
            plain(run.get("error") or ""),
        )
    return made


def resolution(letter: "DeadLetter") -> str:
    """Its resolution in its colour."""
    return f"[{STYLES[letter.resolution.value]}]{letter.resolution.value}[/]"
