"""From a URL to a store."""

from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote, unquote

from penstock.model.clock import Clock
from penstock.model.errors import NOT_SHOWN, InvalidOption, MissingExtra
from penstock.model.redact import without_password
from penstock.store.contract import Store

Opener = Callable[[str, Clock | None], Store]
"""Makes the store that a URL names; the clock is the system's unless a test brings one."""


def open_store(
    url: str,
    clock: Clock | None = None,
    *,
    dispatch: str | None = None,
    allow_volatile: bool = False,
) -> Store:
    """The store a URL names, not yet opened: `sqlite:///work.db`, `postgresql://…`, `redis://…`.

    `dispatch` names a Redis that carries wake-ups beside PostgreSQL. A Redis that keeps nothing on
    disk is a store only with `allow_volatile`.
    """
    scheme, separator, _ = url.partition("://")
    if not separator:
        raise InvalidOption("url", url, "a store's URL such as sqlite:///work.db")
    opener = _OPENERS.get(scheme) or _foreign(scheme)
    if dispatch is not None:
        if opener is not _postgres:
            raise InvalidOption("dispatch", NOT_SHOWN, "left out: it goes with postgresql:// only")
        return _postgres_redis(url, dispatch, clock)
    if opener is _redis:
        return _redis(url, clock, allow_volatile=allow_volatile)
    return opener(url, clock)


def lasting_name(url: str) -> str:
    """Return a URL as it may be written down: without its password, and right in every folder."""
    path = sqlite_path(url) if url.startswith("sqlite://") else None
    return without_password(url) if path is None else f"sqlite:///{quote(str(path))}"


def _foreign(scheme: str) -> Opener:
    """Find somebody else's store: an entry point named like the scheme of its URLs."""
    from importlib.metadata import entry_points

    for point in entry_points(group="penstock.stores", name=scheme):
        found: Opener = point.load()
        return found
    expected = (
        "one that starts with sqlite://, postgresql://, redis://, rediss:// or unix://, "
        "or with the scheme of a store that is installed (entry points penstock.stores)"
    )
    raise InvalidOption("url", scheme + "://…", expected)


def _sqlite(url: str, clock: Clock | None) -> Store:
    from penstock.store.sqlite.store import SqliteStore

    return SqliteStore(url, sqlite_path(url), clock)


def _postgres(url: str, clock: Clock | None) -> Store:
    try:
        from penstock.store.postgres.store import PostgresStore
    except ModuleNotFoundError as error:
        if error.name == "psycopg":
            raise MissingExtra("postgres", "psycopg") from error
        raise
    return PostgresStore(url, clock)


def _redis(url: str, clock: Clock | None, *, allow_volatile: bool = False) -> Store:
    try:
        from penstock.store.redis.store import RedisStore
    except ModuleNotFoundError as error:
        if error.name in ("redis", "hiredis"):
            raise MissingExtra("redis", error.name) from error
        raise
    return RedisStore(url, clock, allow_volatile=allow_volatile)


def _postgres_redis(url: str, dispatch: str, clock: Clock | None) -> Store:
    try:
        from penstock.store.postgres_redis.store import PostgresRedisStore
    except ModuleNotFoundError as error:
        if error.name in ("psycopg", "redis", "hiredis"):
            extra = "postgres" if error.name == "psycopg" else "redis"
            raise MissingExtra(extra, error.name) from error
        raise
    return PostgresRedisStore(url, dispatch, clock)


_OPENERS: dict[str, Opener] = {
    "sqlite": _sqlite,
    "postgresql": _postgres,
    "postgres": _postgres,
    "redis": _redis,
    "rediss": _redis,
    "redis+unix": _redis,
    "unix": _redis,
}


def sqlite_path(url: str) -> Path | None:
    """The file that a URL of SQLite names; None for one in memory."""
    path = unquote(url.partition("://")[2].partition("?")[0])
    if path in ("", "/", "/:memory:"):
        if path == "/:memory:":
            return None
        raise InvalidOption("url", url, "a URL that names a file, such as sqlite:///work.db")
    if not path.startswith("/"):
        raise InvalidOption("url", url, "written with three slashes: sqlite:///work.db")
    return Path(path[1:]).expanduser().absolute()
