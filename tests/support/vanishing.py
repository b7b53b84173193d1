"""Places where no store is yet, and from which one can be lost again."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import psycopg
import pytest
import redis

KINDS = ("sqlite", "postgres", "valkey")


class Vanishing:
    """A place of one kind: what is there, and a way to lose it all."""

    def __init__(self, kind: str, url: str) -> None:
        self.kind = kind
        self.url = url

    def traces(self) -> list[str]:
        """Return the names of all that anybody made here."""
        if self.kind == "sqlite":
            file = _file(self.url)
            return sorted(found.name for found in file.parent.glob(file.name + "*"))
        if self.kind == "postgres":
            with psycopg.connect(self.url, autocommit=True) as connection:
                found = connection.execute(
                    "SELECT nspname FROM pg_namespace WHERE nspname LIKE 'penstock%'"
                )
                return [str(name) for (name,) in found.fetchall()]
        with redis.Redis.from_url(self.url.partition("?")[0]) as client:
            return sorted(key.decode() for key in client.scan_iter(f"{{{self._namespace}}}:*"))

    def lose(self) -> None:
        """Take everything away, as an accident would."""
        if self.kind == "sqlite":
            file = _file(self.url)
            for found in list(file.parent.glob(file.name + "*")):
                found.unlink()
        elif self.kind == "postgres":
            with psycopg.connect(self.url, autocommit=True) as connection:
                connection.execute("DROP SCHEMA penstock CASCADE")
        else:
            with redis.Redis.from_url(self.url.partition("?")[0]) as client:
                client.delete(*self.traces())

    @property
    def _namespace(self) -> str:
        return parse_qs(urlsplit(self.url).query)["namespace"][0]


def find_vanishing(kind: str, name: str, request: pytest.FixtureRequest) -> Vanishing:
    """Return a place of this kind at which there is nothing."""
    if kind == "sqlite":
        folder: Path = request.getfixturevalue("tmp_path")
        return Vanishing(kind, f"sqlite:///{folder}/{name}.db")
    fixture = "postgres_url" if kind == "postgres" else "valkey_url"
    return Vanishing(kind, request.getfixturevalue(fixture))


def _file(url: str) -> Path:
    return Path(url.removeprefix("sqlite:///"))
