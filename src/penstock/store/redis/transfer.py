"""Moving a whole installation into or out of Redis."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.store.contract import Bookmark, Page, Part, Row, Tally
from penstock.store.redis.adoption import Arguments, commands_of, jobs_as_arguments
from penstock.store.redis.audit import page_of_entries
from penstock.store.redis.courier import Courier
from penstock.store.redis.export import BY_JOB, page_by_job
from penstock.store.redis.listing import METRIC_RESOLUTIONS, listing

AT_ONCE = 500
_SIZES = {
    Part.DEAD_LETTERS: ("ZCARD", ("dead",)),
    Part.KEYS: ("HLEN", ("keys",)),
    Part.LINES: ("HLEN", ("lines",)),
    Part.SCHEDULES: ("HLEN", ("schedules",)),
    Part.PAUSES: ("HLEN", ("pauses", "pauses:jobs")),
    Part.LIMITS: ("HLEN", ("limits", "limits:depth")),
    Part.RATES: ("HLEN", ("rates",)),
    Part.BREAKERS: ("HLEN", ("breakers",)),
    Part.RECORDS: ("HLEN", ("records",)),
    Part.AUDIT: ("ZCARD", ("audit",)),
}


class RedisTransfer:
    """`Transfer` on Redis."""

    def __init__(self, courier: Courier) -> None:
        self._courier = courier
        self._listed: dict[Part, list[Row]] = {}

    async def tally(self) -> Tally:
        """Count everything."""
        parts: Counter[Part] = Counter(dict.fromkeys(Part, 0))
        for part, (command, names) in _SIZES.items():
            parts[part] = sum(await self._ask_all(command, names))
        for resolution in METRIC_RESOLUTIONS:
            [steps] = await self._courier.ask(
                ("ZRANGE", f"{self._courier.prefix}metrics:{resolution}", 0, -1)
            )
            hashes = [f"metrics:{resolution}:{int(step)}" for step in steps]
            parts[Part.METRICS] += sum(await self._ask_all("HLEN", hashes))
        statuses: Counter[str] = Counter()
        fences = attempts = 0
        after: Any = 0
        while after != b"":
            after, *counts = await self._courier.call("tally_jobs", after, AT_ONCE)
            executions, logs, edges, fence_sum, attempt_sum, *by_status = counts
            parts[Part.EXECUTIONS] += executions
            parts[Part.LOGS] += logs
            parts[Part.DEPENDENCIES] += edges
            fences, attempts = fences + int(fence_sum), attempts + int(attempt_sum)
            for status, count in zip(by_status[::2], by_status[1::2], strict=True):
                statuses[status.decode()] += count
        parts[Part.JOBS] = statuses.total()
        return Tally(dict(parts), dict(statuses), fences, attempts)

    async def page(self, part: Part, after: str | None, limit: int) -> Page:
        """Read some records of a part."""
        if part in BY_JOB:
            return await page_by_job(self._courier, part, after, limit)
        if part is Part.AUDIT:
            return await page_of_entries(self._courier, after, limit)
        if after is None or part not in self._listed:
            self._listed = {part: await listing(self._courier, part)}
        begin = int(after or 0)
        found = self._listed[part][begin : begin + limit]
        ends = begin + limit >= len(self._listed[part])
        return Page(found, None if ends else str(begin + limit))

    async def adopt(self, part: Part, rows: Sequence[Row], bookmark: Bookmark) -> bool:
        """Write records as they are, and the bookmark."""
        where = (bookmark.move, part.value, bookmark.before or "", bookmark.after)
        if part is Part.JOBS:
            written = await self._courier.call("adopt_jobs", *where, *jobs_as_arguments(rows))
        else:
            commands = await self._commands(part, rows)
            written = await self._courier.call("adopt", *where, *commands)
        return bool(written)

    async def marks(self) -> dict[str, str]:
        """What is written here about a move."""
        [found] = await self._courier.ask(("HGETALL", self._courier.prefix + "moves"))
        texts = [text.decode() for text in found]
        return dict(zip(texts[::2], texts[1::2], strict=True))

    async def mark(self, changes: Mapping[str, str | None]) -> None:
        """Write or remove some of it."""
        told = [word for name, value in changes.items() for word in (str(name), value or "")]
        await self._courier.call("set_marks", *told)

    async def clear(self) -> None:
        """Delete everything; the marks go last, so that an interrupted one is begun again."""
        prefix = self._courier.prefix
        await self.unlink(f"{prefix}meta", f"{prefix}moves")
        self._listed = {}
        await self._courier.ask(
            ("HDEL", f"{prefix}meta", "rolled_up_at"), ("DEL", f"{prefix}moves")
        )

    async def unlink(self, *kept: str) -> None:
        """Delete all keys but some."""
        prefix = self._courier.prefix
        spared = {name.encode() for name in kept}
        cursor: Any = 0
        while True:
            asked = ("SCAN", cursor, "MATCH", f"{prefix}*", "COUNT", 1000)
            [[cursor, found]] = await self._courier.ask(asked)
            gone = [key for key in found if key not in spared]
            if gone:
                await self._courier.ask(("UNLINK", *gone))
            if int(cursor) == 0:
                return

    async def _commands(self, part: Part, rows: Sequence[Row]) -> Arguments:
        now, [deaths] = await self._courier.look(("GET", self._courier.prefix + "dead:seq"))
        return commands_of(part, rows, now, int(deaths or 0))

    async def _ask_all(self, command: str, names: Sequence[str]) -> list[int]:
        prefix = self._courier.prefix
        sizes: list[int] = []
        for first in range(0, len(names), AT_ONCE):
            some = names[first : first + AT_ONCE]
            sizes += await self._courier.ask(*((command, prefix + name) for name in some))
        return sizes
