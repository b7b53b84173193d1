"""Where dead letters are listed, as `lua/letter_lists.lua` keeps it."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from penstock.store.contract import OPEN

Command = tuple[str, str, Sequence[Any]]


def scope_of(tenant_id: str | None) -> str:
    """The scope of a tenant, or of all."""
    return "*" if tenant_id is None else f"={tenant_id}"


def group_key(type_: str, fingerprint: str, tenant_id: str | None, *, only_open: bool) -> str:
    """The list of a group's letters."""
    which = "group:open" if only_open else "group"
    return f"{which}:{scope_of(tenant_id)}\n{type_}\n{fingerprint}"


def among_which(
    type_: str | None,
    fingerprint: str | None,
    canary_of: str | None,
    tenant_id: str | None,
    *,
    only_open: bool,
) -> str:
    """The shortest list with all letters that are wanted."""
    if canary_of is not None:
        return f"canaries:{canary_of}"
    if type_ is not None and fingerprint is not None:
        return group_key(type_, fingerprint, tenant_id, only_open=only_open)
    if not only_open:
        return "dead"
    return "letters:open" if type_ is None else f"letters:open:{type_}"


class Listed(Struct, frozen=True):
    """What decides where a letter is listed."""

    job_id: str
    type: str
    tenant_id: str
    fingerprint: str
    resolution: str
    canary_of: str | None


def lists_of(letter: Listed, death: Any) -> Iterator[Command]:
    """All that lists a letter, whose death is the latest so far, but `dead` itself."""
    job_id, type_, fingerprint = letter.job_id, letter.type, letter.fingerprint
    opened = letter.resolution in set(OPEN)
    if letter.canary_of:
        yield "ZADD", f"canaries:{letter.canary_of}", (death, job_id)
    if opened:
        yield "ZADD", "letters:open", (death, job_id)
        yield "ZADD", f"letters:open:{type_}", (death, job_id)
    for tenant in (None, letter.tenant_id):
        group = f"{type_}\n{fingerprint}"
        yield "ZADD", group_key(type_, fingerprint, tenant, only_open=False), (death, job_id)
        yield "ZADD", f"groups:{scope_of(tenant)}", (death, group)
        if opened:
            yield "ZADD", group_key(type_, fingerprint, tenant, only_open=True), (death, job_id)
        # A letter that is closed brings its group forward, where others of it are open.
        placed = (death, group) if opened else ("XX", death, group)
        yield "ZADD", f"groups:open:{scope_of(tenant)}", placed
