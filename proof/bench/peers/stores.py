"""The stores on which systems are compared, each empty at the start of a turn."""

import subprocess
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

from proof.bench.peers.system import BOTH, POSTGRES, REDIS, SQLITE
from proof.servers import PostgresServer, RedisServer

DATABASE = "turn"
SUMMARY_SECONDS = 0.01


class Stores:
    """A directory for files, a PostgreSQL with its default settings, and a Valkey with AOF."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / "turn.db"
        self._postgres = PostgresServer()
        self._valkey = RedisServer()
        self._servers = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as servers:
            servers.enter_context(self._postgres)
            servers.enter_context(self._valkey)
            self._servers = servers.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._servers.__exit__(kind, error, trace)

    def versions(self) -> dict[str, str]:
        """The servers' versions, by name."""
        program = self._postgres.programs / "postgres"
        postgres = subprocess.run(
            [program, "--version"], capture_output=True, text=True, check=True
        )
        valkey = self._valkey.ask("INFO", "server").decode().split("valkey_version:")[1]
        return {POSTGRES: postgres.stdout.split()[-1], REDIS: valkey.split()[0]}

    @contextmanager
    def empty(self, store: str) -> Generator[str, None, None]:
        """The URL of an empty store; for a store of two servers both URLs with a blank between."""
        opened = {
            SQLITE: self._empty_file,
            POSTGRES: self._empty_database,
            REDIS: self._empty_valkey,
            BOTH: self._empty_both,
        }
        with opened[store]() as url:
            yield url

    @contextmanager
    def _empty_file(self) -> Generator[str, None, None]:
        try:
            yield f"sqlite:///{self._file}"
        finally:
            for left in self._file.parent.glob(f"{self._file.name}*"):
                left.unlink()

    @contextmanager
    def _empty_database(self) -> Generator[str, None, None]:
        # Dropping is a checkpoint too: what one turn leaves to write out slows no other.
        self._postgres.drop_database(DATABASE)
        yield self._postgres.create_database(DATABASE)

    @contextmanager
    def _empty_valkey(self) -> Generator[str, None, None]:
        self._valkey.ask("FLUSHALL")
        self._valkey.ask("BGREWRITEAOF")
        while b"aof_rewrite_in_progress:1" in self._valkey.ask("INFO", "persistence"):
            time.sleep(SUMMARY_SECONDS)
        yield self._valkey.url

    @contextmanager
    def _empty_both(self) -> Generator[str, None, None]:
        with self._empty_database() as database, self._empty_valkey() as valkey:
            yield f"{database} {valkey}"
