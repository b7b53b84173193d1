"""Pages from scripts that look at a bounded number of records, so that none blocks the server."""

from typing import Any

from penstock.store.redis.courier import Courier


async def page(courier: Courier, name: str, *asked: Any, limit: int) -> list[Any]:
    """What a script finds, called again from where it got to until that is enough, or all."""
    found: list[Any] = []
    reached = b""
    while len(found) < limit:
        reached, some = await courier.call(name, *asked, reached, limit - len(found))
        found += some
        if not reached:
            break
    return found
