"""Followers and what waits for them on Redis: a stream each, which the scripts write to."""

from collections.abc import AsyncGenerator, Callable, Collection, Sequence

from msgspec.json import decode, encode

from penstock.model.job import JobChange
from penstock.model.states import Status
from penstock.store.contract import FollowerState, Page, Row
from penstock.store.contract.changes import CHANGES_AT_ONCE
from penstock.store.redis.keys import decode_lane
from penstock.store.redis.scripts import Scripts

PAGE = 1_000


class RedisChanges:
    """`Changes` on Redis."""

    def __init__(self, scripts: Scripts) -> None:
        self._scripts = scripts

    async def follow(self, name: str, statuses: Collection[Status]) -> None:
        """Record from now on when a job comes to one of these statuses."""
        wanted = {*statuses}
        await self._scripts.ask(
            *(
                ("SADD" if status in wanted else "SREM", f"{self._followers}:{status}", name)
                for status in Status
            ),
            ("HSET", self._followers, name, encode(sorted(wanted))),
        )

    async def unfollow(self, name: str) -> bool:
        """Forget a follower and what waits for it; once it is forgotten, nothing is added."""
        known, *_ = await self._scripts.ask(
            ("HDEL", self._followers, name),
            *(("SREM", f"{self._followers}:{status}", name) for status in Status),
            ("UNLINK", stream_of(self._scripts, name)),
        )
        return bool(known)

    async def followers(self) -> list[FollowerState]:
        """All followers, by name."""
        [flat] = await self._scripts.ask(("HGETALL", self._followers))
        states = dict(zip(flat[::2], flat[1::2], strict=True))
        found: list[FollowerState] = []
        for field, statuses in sorted(states.items()):
            name = field.decode()
            stream = stream_of(self._scripts, name)
            waiting, oldest = await self._scripts.ask(
                ("XLEN", stream), ("XRANGE", stream, "-", "+", "COUNT", 1)
            )
            found.append(
                FollowerState(
                    name=name,
                    statuses=decode(statuses, type=tuple[Status, ...]),
                    waiting=waiting,
                    oldest_at=_change(*oldest[0]).at if oldest else None,
                )
            )
        return found

    async def waiting(self, name: str, limit: int = CHANGES_AT_ONCE) -> list[JobChange]:
        """What a follower has not confirmed, the oldest first."""
        return await read_changes(self._scripts, name, None, limit)

    async def confirm(self, name: str, positions: Sequence[str]) -> None:
        """Forget these changes."""
        if positions:
            await self._scripts.ask(("XDEL", stream_of(self._scripts, name), *positions))

    async def erase(self, tenant_id: str) -> int:
        """Forget all changes of a tenant's jobs."""
        return await erase_changes(self._scripts, lambda change: change.tenant_id == tenant_id)

    @property
    def _followers(self) -> str:
        return self._scripts.prefix + "followers"


def stream_of(scripts: Scripts, name: str) -> str:
    """The key of what waits for a follower."""
    return f"{scripts.prefix}changes:{name}"


async def follower_names(scripts: Scripts) -> list[str]:
    """All followers, by name."""
    [names] = await scripts.ask(("HKEYS", scripts.prefix + "followers"))
    return sorted(name.decode() for name in names)


async def read_changes(
    scripts: Scripts, name: str, after: str | None, limit: int
) -> list[JobChange]:
    """Changes that wait for a follower, from the one behind a position on."""
    begin = "-" if after is None else f"({after}"
    asked = ("XRANGE", stream_of(scripts, name), begin, "+", "COUNT", limit)
    [entries] = await scripts.ask(asked)
    return [_change(*entry) for entry in entries]


async def erase_changes(scripts: Scripts, is_theirs: Callable[[JobChange], bool]) -> int:
    """Forget some changes, whoever waits for them; how many."""
    erased = 0
    for name in await follower_names(scripts):
        async for page in _pages(scripts, name):
            theirs = [change.position for change in page if is_theirs(change)]
            if theirs:
                [gone] = await scripts.ask(("XDEL", stream_of(scripts, name), *theirs))
                erased += gone
    return erased


async def _pages(scripts: Scripts, name: str) -> AsyncGenerator[list[JobChange]]:
    page = await read_changes(scripts, name, None, PAGE)
    while page:
        yield page
        page = await read_changes(scripts, name, page[-1].position, PAGE)


async def page_of_changes(scripts: Scripts, after: str | None, limit: int) -> Page:
    """Changes to be moved elsewhere, one follower's after the other's."""
    begin, position = ("", None) if after is None else decode(after, type=tuple[str, str | None])
    rows: list[Row] = []
    for name in await follower_names(scripts):
        if name < begin:
            continue
        since = position if name == begin else None
        changes = await read_changes(scripts, name, since, limit - len(rows))
        rows += (
            (name, c.job_id, c.type, c.queue, c.tenant_id, c.status.value, c.fence, c.at)
            for c in changes
        )
        if len(rows) == limit:
            return Page(rows, encode((name, changes[-1].position)).decode())
    return Page(rows, None)


def encode_change(status: str, fence: int, at: int, lane: str, job_id: str) -> str:
    """A change as the scripts write it, see `lua/parts/changes.lua`."""
    return f"{status} {fence} {at} {lane}\n{job_id}"


def _change(position: bytes, fields: Sequence[bytes]) -> JobChange:
    status, fence, at, rest = fields[1].split(b" ", 3)
    lane, _, job_id = rest.partition(b"\n")
    queue, tenant_id, type_, _ = decode_lane(lane)
    return JobChange(
        position=position.decode(),
        job_id=job_id.decode(),
        type=type_,
        queue=queue,
        tenant_id=tenant_id,
        status=Status(status.decode()),
        fence=int(fence),
        at=int(at),
    )
