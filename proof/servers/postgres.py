"""A PostgreSQL of one's own."""

import os
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from proof.servers import databases, places, wheels
from proof.servers.account import Account, unprivileged
from proof.servers.ports import free_port
from proof.servers.process import Server, ServerDidNotStart

USER = PASSWORD = "penstock"
Mode = Literal["smart", "fast", "immediate"]
SIGNALS: Mapping[Mode, signal.Signals] = MappingProxyType(
    {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
)


class PostgresServer(Server):
    """PostgreSQL 18 (or 16) with checksums: trusted on its socket, by password on loopback.

    `with PostgresServer() as server: url = server.create_database("work")`
    """

    ending = signal.SIGINT
    abandoned = signal.SIGQUIT

    def __init__(
        self,
        directory: Path | None = None,
        *,
        options: Mapping[str, str] = MappingProxyType({}),
        major: int = 18,
    ) -> None:
        self.name = f"PostgreSQL {major}"
        self.port = free_port()
        self._major = major
        super().__init__(unprivileged(), directory)
        self.data = self.postgres_data = self.home / "data"
        self.options = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": str(self.sockets),
            # Files in the data directory go with it; those in /dev/shm stay after a SIGKILL.
            "dynamic_shared_memory_type": "mmap",
            **options,
        }

    @property
    def url(self) -> str:
        """The server on loopback, by its maintenance database and as its superuser."""
        return f"postgresql://{USER}:{PASSWORD}@127.0.0.1:{self.port}/postgres"

    @property
    def socket_url(self) -> str:
        """The server on its unix socket; no password is asked for."""
        return f"postgresql://{USER}@/postgres?host={self.sockets}&port={self.port}"

    @property
    def programs(self) -> Path:
        """The directory with `psql`, `pg_checksums` and the like."""
        return _install(self.account, self._major) / "bin"

    def stop(self, mode: Mode = "fast") -> None:
        """Stop: `fast` ends sessions first, `immediate` leaves recovery to the next start."""
        self._end(SIGNALS[mode])

    def restart(self, mode: Mode = "fast") -> None:
        """Stop, then start on the same data and the same addresses."""
        self.stop(mode)
        self.start()

    def create_database(self, name: str, template: str | None = None) -> str:
        """Make a database, empty or as a copy of another, and return its URL."""
        return databases.create_database(self.url, name, template)

    def drop_database(self, name: str) -> None:
        """Remove a database, whoever is still connected to it."""
        databases.drop_database(self.url, name)

    def _prepare(self) -> None:
        if self.data.exists():
            return
        template = _template(self.account, self._major)
        self.data.mkdir(mode=0o700)
        self.account.own(self.data)
        copied = self.account.run(["cp", "-R", f"{template}/.", self.data])
        if copied.returncode:
            places.remove(self.data)
            self.log.write_text(copied.stderr)
            raise ServerDidNotStart(self.name, self.log)

    def _command(self) -> list[str | Path]:
        named = [f"{name}={value}" for name, value in self.options.items()]
        settings = [part for setting in named for part in ("-c", setting)]
        return [self.programs / "postgres", "-D", self.data, *settings]

    def _answers(self) -> bool:
        # The last line the postmaster writes there says what state it is in.
        status = self.data / "postmaster.pid"
        try:
            lines = status.read_text().splitlines()
        except OSError:
            return False
        return len(lines) > 7 and lines[0] == str(self.pid) and lines[7].strip() == "ready"


def _template(account: Account, major: int) -> Path:
    """A data directory nobody has used yet, made once on this machine."""
    template = places.cache(account) / f"{wheels.postgres_edition(major)}-data"
    if not template.exists():
        with places.workshop(account) as workshop:
            _initialise(account, major, workshop)
            places.put(workshop / "data", template)
    return template


def _initialise(account: Account, major: int, workshop: Path) -> None:
    password = workshop / "password"
    password.write_text(PASSWORD)
    password.chmod(0o644)
    made = account.run(
        [
            *(_install(account, major) / "bin" / "initdb", "-D", workshop / "data", "-U", USER),
            *("--encoding=UTF8", "--locale=C", "--data-checksums", "--no-sync"),
            *("--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={password}"),
        ]
    )
    if made.returncode:
        log = workshop / "log"
        log.write_text(made.stdout + made.stderr)
        raise ServerDidNotStart(f"initdb of PostgreSQL {major}", log)


def _install(account: Account, major: int) -> Path:
    """The programs, or a copy of them where the account may not enter the original's place."""
    install = wheels.postgres_install(major)
    if account.may_run(install / "bin" / "initdb"):
        return install
    copy = places.cache(account) / wheels.postgres_edition(major)
    if not copy.exists():
        with places.workshop(account) as workshop:
            # As far apart as in the wheel: the programs look for their libraries from there.
            libraries = wheels.postgres_libraries()
            shutil.copytree(install, workshop / "copy" / "package" / "install")
            shutil.copytree(libraries, workshop / "copy" / libraries.name)
            _open_up(workshop / "copy")
            places.put(workshop / "copy", copy)
    return copy / "package" / "install"


def _open_up(directory: Path) -> None:
    for folder, _, files in os.walk(directory):
        os.chmod(folder, 0o755)
        for file in files:
            path = Path(folder, file)
            path.chmod(0o755 if path.stat().st_mode & 0o100 else 0o644)
