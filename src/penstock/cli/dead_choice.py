"""Which dead letters a command means."""

from typing import TYPE_CHECKING

import typer

from penstock.cli.root import NotFound, Refused
from penstock.cli.session import ask

if TYPE_CHECKING:
    from penstock.client.dead import Standing
    from penstock.store.contract import DeadLetter, Store

PAGE = 500


def by_resolution(text: str) -> "Standing":
    """What a word for a resolution asks a store for."""
    from penstock.client.dead import RESOLUTIONS, standing

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

    async def look(store: "Store") -> list[str]:
        if job_ids:
            return [(await known_letter(store, job_id)).job_id for job_id in dict.fromkeys(job_ids)]
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
