"""The audit log as a file: every entry, verified on its way, and what proves that it is whole."""

import asyncio
from collections.abc import AsyncIterator
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct, to_builtins

from penstock.apps.agents.files import replacing
from penstock.apps.agents.maintenance.exports import Begun, Exported
from penstock.model.audit import GENESIS, Entry, first_break
from penstock.model.errors import PenstockError

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

PAGE = 1_000


class AuditBroken(PenstockError):
    """An audit log whose chain does not hold."""

    def __init__(self, entry: int, problem: str) -> None:
        self.entry = entry
        self.problem = problem
        super().__init__(
            f"The audit log was not exported, for entry {entry} breaks its chain: {problem}; "
            "`penstock audit verify` shows it, and a copy made earlier what it said."
        )


class Part(Struct, frozen=True, kw_only=True):
    """Which entries are written: a tenant's or all, of a time, up to the end of the chain."""

    until: int
    tenant: str | None = None
    since_at: int | None = None
    until_at: int | None = None

    def holds(self, entry: Entry) -> bool:
        """Whether an entry is one of them."""
        return (
            (self.tenant is None or entry.tenant_id == self.tenant)
            and (self.since_at is None or entry.at >= self.since_at)
            and (self.until_at is None or entry.at < self.until_at)
        )


async def write_audit(app: "Penstock", begun: Begun, part: Part) -> Exported:
    """Write the entries of a part, one JSON document a line, after the whole chain was verified.

    The last line says how far the chain was verified, and the hash of its end: whoever has the file
    can verify its own entries by `previous` and `hash`, and later that the log still holds them.
    """
    hashed, written, size = sha256(), 0, 0
    last: Entry | None = None
    with replacing(begun.path) as path, path.open("wb") as file:
        async for page in _pages(app, part.until):
            problem = first_break(page, last)
            if problem is not None:
                raise AuditBroken(problem.seq, problem.problem)
            last = page[-1]
            lines = [_line(entry) for entry in page if part.holds(entry)]
            written += len(lines)
            size += await asyncio.to_thread(_write, file, hashed, lines)
        end = {
            "verified": last.seq if last else 0,
            "head": last.hash if last else GENESIS,
            "entries": written,
        }
        size += await asyncio.to_thread(_write, file, hashed, [_encoded(end)])
    return Exported(sha256=hashed.hexdigest(), bytes=size, contents=end)


async def _pages(app: "Penstock", until: int) -> AsyncIterator[list[Entry]]:
    after = 0
    while after < until:
        page = await app.store.audit.page(after, min(PAGE, until - after))
        if not page:
            raise AuditBroken(after + 1, "it is missing")
        yield page
        after = page[-1].seq


def _line(entry: Entry) -> bytes:
    told: dict[str, Any] = to_builtins(entry)
    return _encoded(told)


def _encoded(told: dict[str, Any]) -> bytes:
    return msgspec.json.encode(told) + b"\n"


def _write(file: Any, hashed: Any, lines: list[bytes]) -> int:
    data = b"".join(lines)
    hashed.update(data)
    file.write(data)
    return len(data)
