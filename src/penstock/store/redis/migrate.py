"""The version of the layout of the keys, kept with them."""

from penstock.model.errors import SchemaTooNew
from penstock.store.redis.errors import foreign_data
from penstock.store.redis.server import Server

LAYOUT = 1


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
    if before < LAYOUT:
        await server.ask("HSET", server.prefix + "meta", "layout", LAYOUT)
    return before, LAYOUT
