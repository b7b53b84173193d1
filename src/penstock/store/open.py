"""From a URL to a store."""

from pathlib import Path
from urllib.parse import unquote

from penstock.model.clock import Clock
from penstock.model.errors import InvalidOption
from penstock.store.contract import Store


def open_store(url: str, clock: Clock | None = None) -> Store:
    """The store a URL names, not yet opened: `sqlite:///work.db`, `sqlite:////abs/work.db`."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise InvalidOption("url", url, "a store's URL such as sqlite:///work.db")
    if scheme == "sqlite":
        from penstock.store.sqlite.store import SqliteStore

        return SqliteStore(url, _sqlite_path(url, rest), clock)
    raise InvalidOption(
        "url", url, "one that starts with sqlite://, the only store of this version"
    )


def _sqlite_path(url: str, rest: str) -> Path | None:
    path = unquote(rest.partition("?")[0])
    if path in ("", "/", "/:memory:"):
        if path == "/:memory:":
            return None
        raise InvalidOption("url", url, "a URL that names a file, such as sqlite:///work.db")
    if not path.startswith("/"):
        raise InvalidOption("url", url, "written with three slashes: sqlite:///work.db")
    return Path(path[1:]).expanduser().absolute()
