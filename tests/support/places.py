"""A place for a store of each kind: a test marked `every_store` runs on all of them.

In the long form (`make long`) every test does that asks for a place.
"""

from pathlib import Path
from typing import NamedTuple, TypedDict

import pytest

from proof import LONG as LONG

KINDS = ("sqlite", "postgres", "valkey", "postgres+redis")
on_any_store = pytest.mark.parametrize(
    "kind_of_store", ("sqlite", "postgres", "valkey") if LONG else ("sqlite",)
)
"""For what is decided before a store is asked: one does as well as another."""
FLAVOURS = (*KINDS, "sqlite in memory", "redis6", "valkey_cluster")


class Place(NamedTuple):
    """A store by its kind and its URL, and that of the Redis beside it."""

    kind: str
    url: str
    dispatch: str | None = None

    @property
    def address(self) -> str:
        """All of it in one word that child processes take, too."""
        return f"{self.url} + {self.dispatch}" if self.dispatch else self.url

    @property
    def settings(self) -> "Told":
        """What an application is told of it."""
        return {"url": self.url, "dispatch": self.dispatch}


class Told(TypedDict):
    """Settings that name a store."""

    url: str
    dispatch: str | None


def find_place(kind: str, request: pytest.FixtureRequest) -> Place:
    """Find an empty store of this kind, for the test that asks."""
    if kind == "sqlite":
        folder: Path = request.getfixturevalue("tmp_path")
        return Place(kind, f"sqlite:///{folder}/work.db")
    if kind == "sqlite in memory":
        return Place(kind, "sqlite:///:memory:")
    if not kind.startswith("postgres"):
        return Place(kind, request.getfixturevalue(f"{kind}_url"))
    redis: str | None = request.getfixturevalue("valkey_url") if "redis" in kind else None
    return Place(kind, request.getfixturevalue("postgres_store_url"), redis)
