"""Where a torture run takes place: a store, and the ways to harm the server behind it."""

from collections.abc import Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType

from msgspec import Struct

from penstock.testing.torture.plan import Blow


class StoreKind(StrEnum):
    """The stores a run can make for itself."""

    SQLITE = "sqlite"
    POSTGRES = "postgres"
    REDIS = "redis"
    POSTGRES_REDIS = "postgres+redis"


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


SERVER_LEASE_SECONDS = 3.0


@contextmanager
def ground(
    kind: StoreKind, url: str | None, dispatch: str | None, folder: Path
) -> Generator[Ground, None, None]:
    """The store a URL names, of which only workers are harmed, or a new one of the kind.

    A server that is started here keeps its data in the folder, where it may enter it.
    """
    if url is not None:
        sqlite = url.startswith("sqlite:")
        yield Ground(
            settings=_settings(url, dispatch), lease_seconds=1.0 if sqlite else SERVER_LEASE_SECONDS
        )
        return
    with ExitStack() as stack:
        yield _MAKERS[kind](folder, stack)


def _settings(url: str, dispatch: str | None = None) -> dict[str, str]:
    """Complete: a Redis that the environment names is nobody's business here."""
    return {"url": url, "dispatch": dispatch or ""}


def _sqlite(folder: Path, _: ExitStack) -> Ground:
    return Ground(settings=_settings(f"sqlite:///{folder / 'torture.db'}"))


def _postgres(folder: Path, stack: ExitStack) -> Ground:
    from penstock.testing.servers import PostgresServer
    from penstock.testing.servers.account import unprivileged
    from penstock.testing.torture import postgres

    folder.chmod(0o755)  # another user than root runs the server
    kept = folder / "postgres" if unprivileged().may_enter(folder) else None
    server = stack.enter_context(PostgresServer(kept))
    url = server.create_database("torture")
    return Ground(
        settings=_settings(url),
        lease_seconds=SERVER_LEASE_SECONDS,
        harm={
            Blow.CUT: lambda: postgres.cut(url),
            Blow.CRASH: lambda: server.restart("immediate"),
        },
        autopsy=lambda: postgres.autopsy(server, url),
    )


def _redis(folder: Path, stack: ExitStack) -> Ground:
    from penstock.testing.servers import RedisServer

    options = {"appendfsync": "always"}
    server = stack.enter_context(RedisServer(folder / "redis", options=options))

    def crash() -> None:
        server.kill()
        server.start()

    return Ground(
        settings=_settings(server.url),
        lease_seconds=SERVER_LEASE_SECONDS,
        harm={
            Blow.CUT: lambda: _drop_clients(server.ask),
            Blow.CRASH: crash,
        },
    )


def _drop_clients(ask: Callable[..., bytes]) -> None:
    for kind in ("normal", "pubsub"):
        ask("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")


def _postgres_redis(folder: Path, stack: ExitStack) -> Ground:
    truth, hints = _postgres(folder, stack), _redis(folder, stack)
    return Ground(
        settings=_settings(truth.url, hints.url),
        lease_seconds=SERVER_LEASE_SECONDS,
        harm={
            **truth.harm,
            Blow.CUT_DISPATCH: hints.harm[Blow.CUT],
            Blow.CRASH_DISPATCH: hints.harm[Blow.CRASH],
        },
        autopsy=truth.autopsy,
    )


_MAKERS: Mapping[StoreKind, Callable[[Path, ExitStack], Ground]] = MappingProxyType(
    {
        StoreKind.SQLITE: _sqlite,
        StoreKind.POSTGRES: _postgres,
        StoreKind.REDIS: _redis,
        StoreKind.POSTGRES_REDIS: _postgres_redis,
    }
)
