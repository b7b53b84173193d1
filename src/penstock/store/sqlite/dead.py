"""Dead letters on SQLite."""

from collections.abc import Sequence
from typing import Any

from msgspec.json import encode

from penstock.model.failure import MESSAGE_LIMIT
from penstock.model.redact import redact
from penstock.store.contract import DeadLetter, Resolution
from penstock.store.sqlite.prune import delete
from penstock.store.sqlite.transaction import Transaction, readable

_COLUMNS = DeadLetter.__struct_fields__


def find(
    tx: Transaction,
    type_: str | None,
    resolution: Resolution | None,
    before: str | None,
    limit: int,
) -> list[DeadLetter]:
    """A page, newest first."""
    bindings = {
        "type": type_,
        "resolution": resolution.value if resolution else None,
        "before": before,
        "limit": limit,
    }
    return [_dead_letter(row) for row in tx.rows("dead_letters", bindings)]


def get(tx: Transaction, job_id: str) -> DeadLetter | None:
    """One dead letter, or none."""
    row = tx.row("dead_letter", (job_id,))
    return None if row is None else _dead_letter(row)


def resolve(
    tx: Transaction,
    ids: Sequence[str],
    resolution: Resolution,
    notes: str | None,
    by: str | None,
) -> list[str]:
    """Record where a person stands with them."""
    told = None if notes is None else redact(notes)[:MESSAGE_LIMIT]
    who = None if by is None else redact(by)[:200]
    row = {"resolution": resolution.value, "notes": told, "by": who, "now": tx.now}
    return [i for i in ids if tx.many("resolve_dead_letter", ({"id": i, **row},)) == 1]


def purge(tx: Transaction, ids: Sequence[str]) -> int:
    """Delete dead letters and their jobs for good; a job that was requeued lives on."""
    listed = (encode(list(ids)).decode(),)
    known = [row[0] for row in tx.rows("purgeable", listed)]
    delete(tx, [row[0] for row in tx.rows("still_dead", listed)])
    tx.run("delete_dead_letters", (encode(known).decode(),))
    return len(known)


def _dead_letter(row: tuple[Any, ...]) -> DeadLetter:
    fields = dict(zip(_COLUMNS, row, strict=True))
    fields["snapshot"] = readable(fields["snapshot"])
    fields["resolution"] = Resolution(fields["resolution"])
    return DeadLetter(**fields)
