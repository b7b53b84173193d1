"""The version of the layout of the keys, kept with them."""

from collections.abc import Sequence
from typing import Any

from penstock.model.store_errors import SchemaTooNew
from penstock.store.redis.dead import Listed, lists_of
from penstock.store.redis.errors import foreign_data, translate
from penstock.store.redis.keys import decode_lane
from penstock.store.redis.server import Server

LAYOUT = 2
PAGE = 1_000
_LISTED_BY = ("lane", "fingerprint", "resolution", "canary_of")


async def version(server: Server) -> int:
    """The layout of the namespace; 0 when penstock has never been in it."""
    found = await server.ask("HGET", server.prefix + "meta", "layout")
    if found is None:
        return 0
    try:
        return int(found)
    except ValueError:
        raise foreign_data(server.url) from None


async def migrate(server: Server) -> tuple[int, int]:
    """Bring the namespace up to date; the versions before and after."""
    before = await version(server)
    if before > LAYOUT:
        raise SchemaTooNew(server.url, before, LAYOUT)
    if before == 1:
        await _list_letters(server)
    if before < LAYOUT:
        await server.ask("HSET", server.prefix + "meta", "layout", LAYOUT)
    return before, LAYOUT


async def _list_letters(server: Server) -> None:
    """To layout 2: letters are listed by whether they are open and by group; see `lists_of`."""
    prefix = server.prefix
    ids = [job_id.decode() for job_id in await server.ask("ZRANGE", prefix + "dead", 0, -1)]
    for start in range(0, len(ids), PAGE):
        page = ids[start : start + PAGE]
        deaths = await server.ask("ZMSCORE", prefix + "dead", *page)
        asked = [("HMGET", f"{prefix}dead:{job_id}", *_LISTED_BY) for job_id in page]
        rows = await _answers(server, asked)
        commands = [
            (command, prefix + key, *given)
            for job_id, death, row in zip(page, deaths, rows, strict=True)
            if row[0] is not None
            for command, key, given in lists_of(_listed(job_id, row), death)
        ]
        await _answers(server, commands)
    await server.ask("DEL", prefix + "dead:pending")


def _listed(job_id: str, row: Sequence[bytes | None]) -> Listed:
    lane, *told = (word or b"" for word in row)
    _, tenant_id, type_, _ = decode_lane(lane)
    return Listed(job_id, type_, tenant_id, *(word.decode() for word in told))


async def _answers(server: Server, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
    answers = await server.replies(commands)
    for answer in answers:
        if isinstance(answer, Exception):
            raise translate(server.url, answer) from answer
    return answers
