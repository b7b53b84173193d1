"""The mirror: the log as a stream `cdc:events`, and dead letters as `telemetry:dlq`, for others.

An entry of `cdc:events` has its event's sequence as its id, `SEQUENCE-0`, so that the stream itself
says how far it goes: nothing is lost or told twice, whoever mirrors. What all its groups have
acknowledged is trimmed, and what is beyond the newest 100,000. A group that had not read that is
removed, so that its next XREADGROUP is refused, and the hash `cdc:events:resume` says after which
sequence of the log it has to go on; it then creates itself anew with the id that it has come to.
"""

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import msgspec
import structlog
from redis.exceptions import ResponseError

from penstock.events.letters import Letter
from penstock.events.stages import Stages
from penstock.events.stream import FEED, LETTERS, Stream, entries_of
from penstock.store.redis.errors import translate

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

log = structlog.get_logger("penstock.events")

MOST = 100_000
PAGE = 1_000
BATCH = 100
RESUME = f"{FEED}:resume"
NAMES = (
    *("sequence", "event_id", "timestamp", "ingested_at", "event_type", "session_id", "platform"),
    *("tenant_id", "slot", "priority"),
)


class Mirror:
    """Mirrors what is new; one process at a time need do it, and more do no harm."""

    def __init__(
        self,
        app: "Penstock",
        stream: Stream,
        *,
        most: int = MOST,
        stages: Stages | None = None,
    ) -> None:
        self._app = app
        self._stages = stages or Stages()
        self._stream = stream
        self._most = most
        self._key = stream.key(FEED)
        self._last: int | None = None
        self._trim_at = 0

    async def run_once(self) -> int:
        """Mirror a page of events; how many they were."""
        if self._last is None:
            self._last = await self._begin()
        began = time.perf_counter()
        asked = (self._last, PAGE)
        rows = await self._app.read(lambda tx: tx.events.queries.rows("to_mirror", asked))
        if not rows:
            return 0
        self._last = None  # in doubt until every answer has been looked at
        await self._stream.call_all("mirror", [self._key], [_told(page) for page in _pages(rows)])
        self._last = int(rows[-1][0])
        if len(rows) >= BATCH:
            self._stages.add("feed", began, len(rows) / BATCH)
        self._trim_at -= len(rows)
        if self._trim_at <= 0:
            await self.trim()
        return len(rows)

    async def mirror_letters(self) -> int:
        """Mirror dead letters that are not there yet; how many they were."""
        rows = await self._app.read(lambda tx: tx.events.queries.rows("letters_to_mirror", (PAGE,)))
        if not rows:
            return 0
        key = self._stream.key(LETTERS)
        await self._stream.ask_all(
            [("XADD", key, "MAXLEN", "~", MOST, "*", *_letter_fields(row)) for row in rows]
        )
        done = [(row[0],) for row in rows]
        await self._app.transact(lambda tx: tx.events.queries.many("letter_mirrored", done))
        return len(rows)

    async def trim(self) -> None:
        """Trim what every group has acknowledged, and what is too much."""
        needed = await self._needed()
        cut = await self._beyond()
        for group, first in needed.items():
            if first <= cut:
                await self._fall_out(group, first - 1)
        kept = [first for first in needed.values() if first > cut]
        floor = max(cut + 1, min(kept, default=0))
        if floor > 1:
            await self._stream.ask("XTRIM", self._key, "MINID", f"{floor}-0")
        await self._welcome(needed, cut)
        self._trim_at = max(1, self._most // 100)

    async def _begin(self) -> int:
        """The sequence that the stream has come to, or, if that is far behind, is to begin with."""
        await self._stream.open()
        info = await self._stream.server.reply(("XINFO", "STREAM", self._key))
        last = 0
        if isinstance(info, list):
            told = dict(zip(info[::2], info[1::2], strict=True))
            last = int(told[b"last-generated-id"].partition(b"-")[0])
        elif not isinstance(info, ResponseError):
            raise translate(self._stream.server.url, info) from info
        begin = int(await self._app.events.latest()) - self._most
        if begin > last and last:
            for group, first in (await self._needed()).items():
                await self._fall_out(group, first - 1)
        return max(last, begin)

    async def _needed(self) -> dict[str, int]:
        """The first sequence that each group has not acknowledged."""
        groups = await self._stream.server.reply(("XINFO", "GROUPS", self._key))
        needed: dict[str, int] = {}
        for each in () if isinstance(groups, Exception) else groups:
            told = dict(zip(each[::2], each[1::2], strict=True))
            name = told[b"name"].decode()
            pending = await self._stream.ask("XPENDING", self._key, name)
            oldest = pending[1] if int(pending[0]) else None
            read = int(told[b"last-delivered-id"].partition(b"-")[0]) + 1
            needed[name] = read if oldest is None else int(oldest.partition(b"-")[0])
        return needed

    async def _beyond(self) -> int:
        """The last sequence of those that are too many; 0 if none are."""
        over = int(await self._stream.ask("XLEN", self._key)) - self._most
        if over <= 0:
            return 0
        cut = 0
        after = "-"
        while over > 0:
            count = min(over, PAGE)
            found = await self._stream.ask("XRANGE", self._key, after, "+", "COUNT", count)
            page = entries_of(found)
            cut = int(page[-1].id.partition("-")[0])
            after = f"({page[-1].id}"
            over -= len(page)
        return cut

    async def _fall_out(self, group: str, resume_after: int) -> None:
        """Tell a group where in the log it has to go on, then remove it."""

        def work(tx: Any) -> None:
            tx.events.queries.run("fall_out", (group, resume_after, tx.now))

        await self._app.transact(work)
        await self._stream.ask("HSET", self._stream.key(RESUME), group, resume_after)
        await self._stream.ask("XGROUP", "DESTROY", self._key, group)
        log.warning("group_fell_out", stream=FEED, group=group, resume_after=resume_after)

    async def _welcome(self, needed: dict[str, int], cut: int) -> None:
        """Forget of groups that fell out once and are back."""
        fallen = await self._app.read(lambda tx: tx.events.queries.rows("fallen_groups"))
        back = [(name,) for name, *_ in fallen if needed.get(name, 0) > cut]
        if back:
            await self._app.transact(lambda tx: tx.events.queries.many("group_returned", back))
            names = [name for (name,) in back]
            await self._stream.ask("HDEL", self._stream.key(RESUME), *names)


def _pages(rows: Sequence[tuple[Any, ...]]) -> list[Sequence[tuple[Any, ...]]]:
    """Rows that go with one call: others have their turn between two."""
    return [rows[first : first + BATCH] for first in range(0, len(rows), BATCH)]


def _told(rows: Sequence[tuple[Any, ...]]) -> list[Any]:
    """What the script takes."""
    return [msgspec.msgpack.encode(rows), *NAMES]


def _letter_fields(row: tuple[Any, ...]) -> list[Any]:
    letter = Letter(**dict(zip(Letter.__struct_fields__, row, strict=True)))
    told = msgspec.structs.asdict(letter)
    return [each for name, value in told.items() if value is not None for each in (name, value)]
