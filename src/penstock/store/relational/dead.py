"""Dead letters in SQL."""

from collections.abc import Mapping, Sequence
from typing import Any

from penstock.model.failure import MESSAGE_LIMIT, NAME_LIMIT
from penstock.model.redact import redacted
from penstock.store.contract import OPEN, DeadGroup, DeadLetter, Resolution
from penstock.store.relational.transaction import StorePart, Transaction, readable, reads, writes
from penstock.store.relational.upkeep import purge

_COLUMNS = DeadLetter.__struct_fields__


def _query_for(wanted: Mapping[str, Any]) -> str:
    """The statement whose index fits what is asked."""
    if wanted["canary_of"] is not None:
        return "dead_canaries"
    if wanted["fingerprint"] is not None:
        return "dead_letters" if wanted["type"] is None else "dead_group"
    if not wanted["only_open"]:
        return "dead_letters"
    return "open_letters" if wanted["type"] is None else "open_letters_of_type"


def _dead_letter(row: tuple[Any, ...]) -> DeadLetter:
    fields = dict(zip(_COLUMNS, row, strict=True))
    fields["snapshot"] = readable(fields["snapshot"])
    fields["resolution"] = Resolution(fields["resolution"])
    return DeadLetter(**fields)


def _dead_group(row: tuple[Any, ...]) -> DeadGroup:
    return DeadGroup(**dict(zip(DeadGroup.__struct_fields__, row, strict=True)))


class RelationalDeadLetters(StorePart):
    """`DeadLetters` in SQL."""

    @reads
    def find(
        self,
        tx: Transaction,
        *,
        type: str | None = None,  # noqa: A002 - the column's name
        tenant_id: str | None = None,
        resolution: Resolution | None = None,
        only_open: bool = False,
        fingerprint: str | None = None,
        canary_of: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[DeadLetter]:
        """A page, newest first."""
        wanted = {
            "type": type,
            "tenant_id": tenant_id,
            "resolution": resolution.value if resolution else None,
            "only_open": only_open or resolution in OPEN,
            "fingerprint": fingerprint,
            "canary_of": canary_of,
            "before": before,
            "limit": limit,
        }
        return [_dead_letter(row) for row in tx.rows(_query_for(wanted), wanted)]

    @reads
    def groups(
        self,
        tx: Transaction,
        *,
        type: str | None = None,  # noqa: A002 - the column's name
        tenant_id: str | None = None,
        only_open: bool = False,
        before: str | None = None,
        limit: int = 50,
    ) -> list[DeadGroup]:
        """Alike ones together, a page: the group with the newest letter first."""
        wanted = {
            "type": type,
            "tenant_id": tenant_id,
            "only_open": only_open,
            "before": before,
            "limit": limit,
        }
        return [_dead_group(row) for row in tx.rows("dead_groups", wanted)]

    @reads
    def group(
        self,
        tx: Transaction,
        type: str,  # noqa: A002 - the column's name
        fingerprint: str,
        *,
        tenant_id: str | None = None,
    ) -> DeadGroup | None:
        """One group, or None."""
        wanted = {"type": type, "fingerprint": fingerprint, "tenant_id": tenant_id}
        row = tx.row("one_dead_group", wanted)
        return None if row is None else _dead_group(row)

    @reads
    def group_names(
        self,
        tx: Transaction,
        *,
        type: str | None = None,  # noqa: A002 - the column's name
        tenant_id: str | None = None,
    ) -> list[tuple[str, str]]:
        """Type and fingerprint of every group."""
        rows = tx.rows("dead_group_names", {"type": type, "tenant_id": tenant_id})
        return [(type_, fingerprint) for type_, fingerprint in rows]

    @reads
    def get(self, tx: Transaction, job_id: str) -> DeadLetter | None:
        """One dead letter, or None."""
        row = tx.row("dead_letter", (job_id,))
        return None if row is None else _dead_letter(row)

    @writes
    def resolve(
        self,
        tx: Transaction,
        ids: Sequence[str],
        resolution: Resolution,
        *,
        notes: str | None,
        by: str | None,
    ) -> list[str]:
        """Record where a person stands with them."""
        told, who = redacted(notes, MESSAGE_LIMIT), redacted(by, NAME_LIMIT)
        row = {"resolution": resolution.value, "notes": told, "by": who, "now": tx.now}
        return [i for i in ids if tx.many("resolve_dead_letter", ({"id": i, **row},)) == 1]

    @writes
    def mark_canaries(self, tx: Transaction, ids: Sequence[str], group: str | None) -> None:
        """Remember which jobs are replayed ahead of their group."""
        tx.run("mark_canaries", (group, tx.listed(ids)))

    @writes
    def purge(self, tx: Transaction, ids: Sequence[str]) -> int:
        """Delete dead letters and their jobs for good."""
        return purge(tx, ids)
