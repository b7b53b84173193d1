"""Dead letters on Redis."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Raw, Struct
from msgspec.json import Decoder, decode, encode

from penstock.model.failure import MESSAGE_LIMIT, NAME_LIMIT
from penstock.model.redact import redacted
from penstock.store.contract import OPEN, DeadGroup, DeadLetter, Resolution
from penstock.store.redis.documents import number, page, text
from penstock.store.redis.errors import encoded
from penstock.store.redis.keys import Ran, decode_lane, readable_doc
from penstock.store.redis.scripts import Scripts

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


IDS_AT_ONCE = 200
_history: Decoder[list[tuple[int, Ran]]] = Decoder(list[tuple[int, Ran]])


class RedisDeadLetters:
    """`DeadLetters` on Redis."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def find(
        self,
        *,
        type: str | None = None,  # noqa: A002 - the column's name
        resolution: Resolution | None = None,
        only_open: bool = False,
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
        among = among_which(
            type, fingerprint, canary_of, tenant_id, only_open=only_open or resolution in OPEN
        )
        asked = ("dead_letters", wanted, among, before or "")
        return [_dead_letter(row) for row in await page(self._scripts, *asked, limit=limit)]

    async def groups(
        self,
        *,
        type: str | None = None,  # noqa: A002 - the column's name
        tenant_id: str | None = None,
        only_open: bool = False,
        before: str | None = None,
        limit: int = 50,
    ) -> list[DeadGroup]:
        """Alike ones together, a page: the group with the newest letter first."""
        scope = scope_of(tenant_id)
        among = f"groups:open:{scope}" if only_open else f"groups:{scope}"
        asked = ("dead_groups", among, scope, type or "", before or "")
        return [_dead_group(row) for row in await page(self._scripts, *asked, limit=limit)]

    async def group(
        self,
        type: str,  # noqa: A002 - the column's name
        fingerprint: str,
        *,
        tenant_id: str | None = None,
    ) -> DeadGroup | None:
        """One group, or none."""
        asked = (scope_of(tenant_id), f"{type}\n{fingerprint}")
        found = await self._scripts.call("dead_group", *asked)
        return None if found is None else _dead_group(found)

    async def group_names(
        self,
        *,
        type: str | None = None,  # noqa: A002 - the column's name
        tenant_id: str | None = None,
    ) -> list[tuple[str, str]]:
        """Type and fingerprint of every group."""
        key = f"{self._scripts.prefix}groups:{scope_of(tenant_id)}"
        [names] = await self._scripts.ask(("ZRANGE", key, 0, -1))
        found = (_type_and_fingerprint(name) for name in names)
        return [(named, of) for named, of in found if type in (None, named)]

    async def get(self, job_id: str) -> DeadLetter | None:
        """One dead letter, or none."""
        letter = await self._scripts.call("dead_letter", job_id)
        return None if letter is None else _dead_letter(letter)

    async def resolve(
        self, ids: Sequence[str], resolution: Resolution, *, notes: str | None, by: str | None
    ) -> list[str]:
        """Record where a person stands with them."""
        told, who = redacted(notes, MESSAGE_LIMIT), redacted(by, NAME_LIMIT)
        found: list[bytes] = []
        for some in _pieces(ids):
            asked = (resolution.value, told or "", who or "", *some)
            found += await self._scripts.call("resolve_dead", *asked)
        return [job_id.decode() for job_id in found]

    async def mark_canaries(self, ids: Sequence[str], group: str | None) -> None:
        """Remember which jobs are replayed ahead of their group."""
        for some in _pieces(ids):
            await self._scripts.call("mark_canaries", group or "", *some)

    async def purge(self, ids: Sequence[str]) -> int:
        """Delete dead letters and their jobs for good."""
        return sum([await self._scripts.call("purge_dead", *some) for some in _pieces(ids)])


def _pieces(ids: Sequence[str]) -> list[Sequence[str]]:
    return [ids[first : first + IDS_AT_ONCE] for first in range(0, len(ids), IDS_AT_ONCE)]


def _dead_group(found: Sequence[Any]) -> DeadGroup:
    """A group from what `lua/parts/groups.lua` answers."""
    name, error, error_code, count, opened, first_at, last_at, newest_id = found
    type_, fingerprint = _type_and_fingerprint(name)
    return DeadGroup(
        fingerprint=fingerprint,
        type=type_,
        error=text(error),
        error_code=text(error_code),
        count=count,
        open=opened,
        first_at=int(first_at),
        last_at=int(last_at),
        newest_id=newest_id.decode(),
    )


def _type_and_fingerprint(group: bytes) -> tuple[str, str]:
    type_, _, fingerprint = group.decode().partition("\n")
    return type_, fingerprint


def _dead_letter(letter: Sequence[Any]) -> DeadLetter:
    """A dead letter from its fields, see `lua/parts/letters.lua`."""
    (
        job_id, lane, doc, payload, checkpoint, priority, scheduled_at, made_at, reason, error,
        error_code, fingerprint, attempts, rescues, executions, resolution, notes, resolved_by,
        resolved_at, created_at, canary_of,
    ) = letter  # fmt: skip
    queue, tenant_id, type_, _ = decode_lane(lane)
    about = readable_doc(doc)
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
