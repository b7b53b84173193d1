"""The audit log: every entry holds the hash of the one before, so none can be changed unseen."""

import hashlib
from collections.abc import Iterable

from msgspec import Struct
from msgspec.json import encode
from msgspec.structs import replace

GENESIS = "0" * 64
"""What the first entry holds in place of a hash before it."""


class Entry(Struct, frozen=True, kw_only=True):
    """Who did what to which thing; `details` is a JSON object of ids and keyed hashes only."""

    seq: int
    at: int
    actor: str
    action: str
    subject: str
    tenant_id: str
    details: str
    previous: str
    hash: str

    @property
    def intact(self) -> bool:
        """Whether nothing in it was changed since it was written."""
        return self.hash == hash_of(self)


class Break(Struct, frozen=True):
    """Where the chain does not hold, and why."""

    seq: int
    problem: str


def sealed(
    after: Entry | None,
    *,
    at: int,
    actor: str,
    action: str,
    subject: str,
    tenant_id: str = "",
    details: str = "{}",
) -> Entry:
    """The entry that follows another, or the first."""
    draft = Entry(
        seq=1 if after is None else after.seq + 1,
        at=at,
        actor=actor,
        action=action,
        subject=subject,
        tenant_id=tenant_id,
        details=details,
        previous=GENESIS if after is None else after.hash,
        hash="",
    )
    return replace(draft, hash=hash_of(draft))


def hash_of(entry: Entry) -> str:
    """SHA-256 over the entry's place in the chain and everything it says."""
    said = (
        entry.previous,
        entry.seq,
        entry.at,
        entry.actor,
        entry.action,
        entry.subject,
        entry.tenant_id,
        entry.details,
    )
    return hashlib.sha256(encode(said)).hexdigest()


def first_break(entries: Iterable[Entry], after: Entry | None = None) -> Break | None:
    """The first place where entries in order do not continue the chain; none if all do."""
    seq, previous = (0, GENESIS) if after is None else (after.seq, after.hash)
    for entry in entries:
        if entry.seq != seq + 1:
            return Break(seq + 1, f"entry {seq + 1} is missing")
        if entry.previous != previous:
            return Break(entry.seq, "it does not continue the entry before")
        if not entry.intact:
            return Break(entry.seq, "it was changed after it was written")
        seq, previous = entry.seq, entry.hash
    return None
