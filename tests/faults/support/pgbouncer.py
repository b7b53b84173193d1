"""PgBouncer in transaction mode, where it is installed."""

import shutil
import socket
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from proof.servers.account import unprivileged
from proof.servers.ports import free_port
from proof.servers.process import Server

# Debian puts it where only root looks for programs.
PROGRAM = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")

CONFIGURATION = """
[databases]
* = host={host} port={port}

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {listen}
unix_socket_dir =
auth_type = trust
auth_file = {users}
pool_mode = transaction
default_pool_size = 3
"""


class PgBouncer(Server):
    """Stands before a PostgreSQL server and shares a few of its connections."""

    name = "PgBouncer"

    def __init__(self, server_url: str) -> None:
        super().__init__(unprivileged(), None)
        self.port = free_port()
        self._server = urlsplit(server_url)

    @property
    def url(self) -> str:
        """The database behind it."""
        user = f"{self._server.username}:{self._server.password}"
        return f"postgresql://{user}@127.0.0.1:{self.port}{self._server.path}"

    def _prepare(self) -> None:
        users = self.home / "users"
        users.write_text(f'"{self._server.username}" "{self._server.password}"\n')
        self._configuration.write_text(
            CONFIGURATION.format(
                host=self._server.hostname,
                port=self._server.port,
                listen=self.port,
                users=users,
            )
        )

    @property
    def _configuration(self) -> Path:
        return self.home / "pgbouncer.ini"

    def _command(self) -> list[str | Path]:
        assert PROGRAM is not None
        return [PROGRAM, self._configuration]

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1):
            return True
        return False
