"""Which dead letters a command means."""

from typing import TYPE_CHECKING

import typer

from penstock.cli.root import NotFound, Refused
from penstock.cli.session import ask

if TYPE_CHECKING:
    from penstock.store.contract import DeadLetter, Resolution, Store

PAGE = 500


def by_resolution(text: str) -> "list[Resolution | None]":
    """The resolutions a word stands for; `None` is any."""
    from penstock.client.dead import OPEN
    from penstock.store.contract import Resolution

    words: dict[str, list[Resolution | None]] = {
        "open": [*OPEN],
        "any": [None],
        **{resolution.value: [resolution] for resolution in Resolution},
    }
    if text not in words:
        raise Refused(
            f"Option 'resolution' is {text!r}, but it must be one of: {', '.join(words)}."
        )
    return words[text]


async def letters_with(
    store: "Store",
    resolutions: "list[Resolution | None]",
    type_name: str | None,
    before: str | None,
    limit: int,
) -> "list[DeadLetter]":
    """A page across several resolutions, newest first."""
    if before is not None:
        await known_letter(store, before)
    found = [
        letter
        for resolution in resolutions
        for letter in await store.dead.find(
            type=type_name, resolution=resolution, before=before, limit=limit
        )
    ]
    found.sort(key=lambda letter: letter.created_at, reverse=True)
    return found[:limit]


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
    settled: bool = False,
) -> list[str]:
    """The ids that `ID...`, `--type` or `--all` name; exactly one of the three is needed."""
    if sum((bool(job_ids), type_name is not None, all_)) != 1:
        raise Refused("Say which: ids, --type TYPE or --all, and only one of them.")

    async def look(store: "Store") -> list[str]:
        if job_ids:
            return [(await known_letter(store, job_id)).job_id for job_id in dict.fromkeys(job_ids)]
        return await every_id(store, type_name, settled=settled)

    return ask(ctx, look)


async def every_id(store: "Store", type_name: str | None, *, settled: bool) -> list[str]:
    """All open dead letters of a type (or any); with `settled`, the decided ones too."""
    ids: list[str] = []
    for resolution in by_resolution("any" if settled else "open"):
        before: str | None = None
        while page := await store.dead.find(
            type=type_name, resolution=resolution, before=before, limit=PAGE
        ):
            ids += [letter.job_id for letter in page]
            before = page[-1].job_id
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
