"""A Redis or Valkey of one's own."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from proof.servers import wheels
from proof.servers.account import Account
from proof.servers.ports import free_port
from proof.servers.process import Server
from proof.servers.resp import ask

Kind = Literal["valkey", "redis6"]
PROGRAMS = MappingProxyType({"valkey": wheels.valkey_program, "redis6": wheels.redis6_program})
NAMES = MappingProxyType({"valkey": "Valkey", "redis6": "Redis 6.2"})
# What it says once its data is loaded, to one who has no password too.
ANSWERS = (b"+PONG", b"-NOAUTH")


class RedisServer(Server):
    """Valkey 9 or Redis 6.2 that keeps its data in an append-only file.

    `with RedisServer(kind="redis6") as server: url = server.url`
    """

    def __init__(
        self,
        directory: Path | None = None,
        kind: Kind = "valkey",
        options: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.name = NAMES[kind]
        self.port = free_port()
        self._program = PROGRAMS[kind]
        super().__init__(Account(), directory)
        self.data = self.home / "data"
        self.socket = self.sockets / "socket"
        self.options = {
            "bind": "127.0.0.1",
            "port": str(self.port),
            "unixsocket": str(self.socket),
            "dir": str(self.data),
            "save": "",
            "appendonly": "yes",
            "appendfsync": "everysec",
            "maxmemory-policy": "noeviction",
            **options,
        }

    @property
    def url(self) -> str:
        """The server on loopback."""
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def socket_url(self) -> str:
        """The server on its unix socket."""
        return f"unix://{self.socket}"

    def ask(self, *words: str) -> bytes:
        """Send one command and return the raw answer: `server.ask("CONFIG", "RESETSTAT")`."""
        return ask(self.socket, *words)

    def _prepare(self) -> None:
        self.data.mkdir(exist_ok=True)
        self.socket.unlink(missing_ok=True)

    def _command(self) -> list[str | Path]:
        settings = [part for name, value in self.options.items() for part in (f"--{name}", value)]
        return [self._program(), *settings]

    def _answers(self) -> bool:
        try:
            return self.ask("PING").startswith(ANSWERS)
        except OSError:
            return False
