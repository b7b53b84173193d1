"""Dead letters on Redis."""

from collections.abc import Sequence
from typing import Any

from msgspec import Raw, Struct
from msgspec.json import Decoder, decode, encode

from penstock.model.failure import MESSAGE_LIMIT, NAME_LIMIT
from penstock.model.redact import redacted
from penstock.store.contract import DeadGroup, DeadLetter, Resolution
from penstock.store.redis.courier import Courier
from penstock.store.redis.errors import encoded
from penstock.store.redis.keys import Ran, decode_doc, decode_lane
from penstock.store.redis.paging import page
from penstock.store.redis.records import number, text

_history: Decoder[list[tuple[int, Ran]]] = Decoder(list[tuple[int, Ran]])
_OPEN = (b"pending", b"investigating")


class RedisDeadLetters:
    """`DeadLetters` on Redis."""

    def __init__(self, courier: Courier) -> None:
        self._courier = courier

    async def find(
        self,
        *,
        type: str | None = None,  # noqa: A002 - the column's name
        resolution: Resolution | None = None,
        fingerprint: str | None = None,
        canary_of: str | None = None,
        tenant_id: str | None = None,
        before: str | None = None,
        limit: int = 50,
    ) -> list[DeadLetter]:
        """A page, newest first."""
        named = {"type": type, "resolution": resolution, "fingerprint": fingerprint}
        named |= {"canary_of": canary_of, "tenant_id": tenant_id}
        wanted = encoded({name: value for name, value in named.items() if value is not None})
        asked = ("dead_letters", wanted, before or "")
        return [_dead_letter(row) for row in await page(self._courier, *asked, limit=limit)]

    async def groups(
        self,
        *,
        type: str | None = None,  # noqa: A002 - the column's name
        resolution: Resolution | None = None,
        tenant_id: str | None = None,
        limit: int = 50,
    ) -> list[DeadGroup]:
        """Alike ones together; the group with the most that nobody has settled first."""
        groups: dict[tuple[bytes, str], _Group] = {}
        below = b""
        while True:
            below, rows = await self._courier.call("dead_groups", below)
            for job_id, lane, fingerprint, *rest in rows:
                _, tenant, type_, _ = decode_lane(lane)
                if type not in (None, type_) or tenant_id not in (None, tenant):
                    continue
                if resolution is not None and rest[2] != resolution.value.encode():
                    continue
                group = groups.setdefault((fingerprint, type_), _Group(newest_id=job_id))
                group.add(*rest)
            if not below:
                break
        found = [group.told(*named) for named, group in groups.items()]
        found.sort(key=lambda group: (-group.unresolved, -group.count, -group.last_at))
        return found[:limit]

    async def get(self, job_id: str) -> DeadLetter | None:
        """One dead letter, or none."""
        letter = await self._courier.call("dead_letter", job_id)
        return None if letter is None else _dead_letter(letter)

    async def resolve(
        self, ids: Sequence[str], resolution: Resolution, *, notes: str | None, by: str | None
    ) -> list[str]:
        """Record where a person stands with them."""
        told, who = redacted(notes, MESSAGE_LIMIT), redacted(by, NAME_LIMIT)
        asked = (resolution.value, told or "", who or "", *ids)
        return [job_id.decode() for job_id in await self._courier.call("resolve_dead", *asked)]

    async def mark_canaries(self, ids: Sequence[str], group: str | None) -> None:
        """Remember which jobs are replayed ahead of their group."""
        await self._courier.call("mark_canaries", group or "", *ids)

    async def purge(self, ids: Sequence[str]) -> int:
        """Delete dead letters and their jobs for good."""
        return int(await self._courier.call("purge_dead", *ids))


class _Group(Struct):
    """A group while its letters are counted, newest first."""

    newest_id: bytes
    error: bytes | None = None
    error_code: bytes | None = None
    count: int = 0
    unresolved: int = 0
    first_at: int = 0
    last_at: int = 0

    def add(self, error: bytes, error_code: bytes, resolution: bytes, created_at: bytes) -> None:
        at = int(created_at)
        if self.count == 0:
            self.error, self.error_code = error, error_code
            self.first_at = self.last_at = at
        self.count += 1
        self.unresolved += resolution in _OPEN
        self.first_at = min(self.first_at, at)
        self.last_at = max(self.last_at, at)

    def told(self, fingerprint: bytes, type_: str) -> DeadGroup:
        return DeadGroup(
            fingerprint=fingerprint.decode(),
            type=type_,
            error=text(self.error),
            error_code=text(self.error_code),
            count=self.count,
            unresolved=self.unresolved,
            first_at=self.first_at,
            last_at=self.last_at,
            newest_id=self.newest_id.decode(),
        )


def _dead_letter(letter: Sequence[Any]) -> DeadLetter:
    """A dead letter from its fields, see `lua/letters.lua`."""
    (
        job_id, lane, doc, payload, checkpoint, priority, scheduled_at, made_at, reason, error,
        error_code, fingerprint, attempts, rescues, executions, resolution, notes, resolved_by,
        resolved_at, created_at, canary_of,
    ) = letter  # fmt: skip
    queue, tenant_id, type_, _ = decode_lane(lane)
    about = decode_doc(doc)
    snapshot = {
        "id": job_id.decode(),
        "type": type_,
        "queue": queue,
        "category": about.category,
        "priority": int(priority),
        "payload": _embedded(payload),
        "max_retries": about.max_retries,
        "timeout_ms": about.timeout_ms,
        "tenant_id": tenant_id,
        "workspace_id": about.workspace_id,
        "created_by": about.created_by,
        "parent_job_id": about.parent_job_id,
        "key": about.key,
        "tags": about.tags or (),
        "created_at": int(made_at),
        "scheduled_at": int(scheduled_at),
        "checkpoint": text(checkpoint),
    }
    return DeadLetter(
        job_id=job_id.decode(),
        type=type_,
        queue=queue,
        tenant_id=tenant_id,
        reason=reason.decode(),
        error=text(error),
        error_code=text(error_code),
        fingerprint=fingerprint.decode(),
        attempts=int(attempts),
        rescues=int(rescues),
        snapshot=encode(snapshot).decode(),
        executions=_executions(executions),
        resolution=Resolution(resolution.decode()),
        notes=text(notes),
        resolved_by=text(resolved_by),
        resolved_at=number(resolved_at),
        created_at=int(created_at),
        canary_of=text(canary_of),
    )


def _embedded(payload: bytes) -> object:
    """The payload inside the snapshot: as it is, or as text where it is no JSON."""
    try:
        decode(payload)
    except ValueError:
        return payload.decode("utf-8", "replace")
    return Raw(payload)


def _executions(stored: bytes) -> str:
    history = [
        {
            "fence": fence,
            "status": ran.status,
            "started_at": ran.started_at,
            "ended_at": ran.ended_at,
            "duration_ms": ran.duration_ms,
            "worker": ran.worker,
            "error_class": ran.error_class,
            "error_code": ran.error_code,
            "error": ran.error,
        }
        for fence, ran in _history.decode(stored)
    ]
    return encode(history).decode()
