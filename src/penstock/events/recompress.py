"""Recompression: bodies that were written in haste are compressed as well as they can be."""

import asyncio
from typing import TYPE_CHECKING, Any

import structlog

from penstock.events.codec import Codec, best, packed, unpacked
from penstock.model.redact import redact

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.events.extension import EventSettings

log = structlog.get_logger("penstock.events")

PAGE = 500
AT_ONCE = 50_000
"""So many at most in one pass; the next one goes on."""


async def recompress(app: "Penstock") -> int:
    """Compress what is raw, and what is worse compressed than new events are; how many."""
    target, count, after = _target(app), 0, 0
    while count < AT_ONCE:
        rows = await _loose(app, target, after)
        if not rows:
            break
        after = int(rows[-1][0])
        count += await _replace(app, target, rows)
    return count


def _target(app: "Penstock") -> Codec:
    settings: EventSettings = app.extensions.settings("events")
    chosen = Codec(settings.codec or best())
    return best() if chosen is Codec.RAW else chosen


async def _loose(app: "Penstock", target: Codec, after: int) -> list[tuple[Any, ...]]:
    """Raw bodies, and those of zlib unless that is what was chosen."""
    asked = (target.value, after, PAGE)
    return await app.read(lambda tx: tx.events.queries.rows("loose", asked))


async def _replace(app: "Penstock", target: Codec, rows: list[tuple[Any, ...]]) -> int:
    changed = await asyncio.to_thread(_packed, target, rows)
    platforms = {row[2] for row in rows}

    def work(tx: Any) -> int:
        if target is Codec.ZSTD:
            for platform in platforms:
                tx.events.keep_dictionary(platform)
        return sum(tx.events.queries.run("recompress", bindings) for bindings in changed)

    return await app.transact(work) if changed else 0


def _packed(target: Codec, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Bodies as they are to be kept; one that is damaged, or would become so, stays as it is."""
    changed: list[tuple[Any, ...]] = []
    damaged: list[tuple[int, Exception]] = []
    for sequence, at, platform, codec, data in rows:
        try:
            body = unpacked(data, codec)
            kept = packed(body, target, platform)
            if unpacked(kept, target.value) != body:
                raise ValueError(f"its body comes out of {target.value} as another one")
        except Exception as error:
            damaged.append((sequence, error))
        else:
            changed.append((target.value, kept, sequence, at, codec))
    if damaged:
        first, problem = damaged[0]
        told = redact(repr(problem))
        log.warning("events_not_recompressed", count=len(damaged), sequence=first, error=told)
    return changed
