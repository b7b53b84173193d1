"""Documents that the first who asks makes, and everybody then finds: keys, secrets and marks."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.json import decode, encode

if TYPE_CHECKING:
    from penstock.store.contract import Store


async def kept(store: "Store", kind: str, name: str, make: Callable[[], str]) -> str:
    """The text under a name, the same for every process of an installation."""
    while True:
        record = await store.records.get(kind, name)
        if record is not None:
            return decode(record.document, type=str)
        await store.records.put(kind, name, encode(make()).decode(), revision=0)
