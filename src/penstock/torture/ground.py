"""Where a torture run takes place: a store, and the ways to harm the server behind it."""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from penstock.torture.plan import Blow

SERVER_LEASE_SECONDS = 3.0


class Ground(Struct, frozen=True, kw_only=True):
    """A store by its settings, what can be done to its server, and who looks at it afterwards.

    A server is away for a while now and then, so leases on one last longer: the workers must
    have the time to come back.
    """

    settings: dict[str, str]
    lease_seconds: float = 1.0
    harm: Mapping[Blow, Callable[[], None]] = MappingProxyType({})
    autopsy: Callable[[], list[str]] = list

    @property
    def url(self) -> str:
        """The store's URL."""
        return self.settings["url"]


FindGround = Callable[[Path], AbstractContextManager[Ground]]
"""Takes the folder of a run, in which a store of its own may be made."""


def complete(url: str, dispatch: str | None = None) -> dict[str, str]:
    """Name a store completely: a Redis that the environment names is nobody's business here."""
    return {"url": url, "dispatch": dispatch or ""}


def new_file(folder: Path) -> AbstractContextManager[Ground]:
    """A new SQLite file."""
    return nullcontext(Ground(settings=complete(f"sqlite:///{folder / 'torture.db'}")))


def known_store(url: str, dispatch: str | None = None) -> FindGround:
    """The store that a URL names, of which only workers are harmed."""
    sqlite = url.startswith("sqlite:")
    place = Ground(
        settings=complete(url, dispatch), lease_seconds=1.0 if sqlite else SERVER_LEASE_SECONDS
    )
    return lambda _: nullcontext(place)
