"""Whether anybody can say who they are."""

from penstock.store.contract import Store


async def any_credentials(store: Store) -> bool:
    """Whether there is a token or a user."""
    for kind in ("token", "user"):
        if await store.records.list(kind, limit=1):
            return True
    return False
