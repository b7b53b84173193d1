"""A place for a store of each kind: a test marked `every_store` runs on all of them.

With `PENSTOCK_EVERY_STORE=1` every test does that asks for a place.
"""

import os
from pathlib import Path
from typing import NamedTuple, TypedDict

import pytest

KINDS = ("sqlite", "postgres", "valkey", "postgres+redis")
EVERY_STORE = os.environ.get("PENSTOCK_EVERY_STORE") == "1"


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
    """An empty store of this kind, for the test that asks."""
    if kind == "sqlite":
        folder: Path = request.getfixturevalue("tmp_path")
        return Place(kind, f"sqlite:///{folder}/work.db")
    if kind == "valkey":
        return Place(kind, request.getfixturevalue("valkey_url"))
    redis: str | None = request.getfixturevalue("valkey_url") if "redis" in kind else None
    return Place(kind, request.getfixturevalue("postgres_store_url"), redis)
