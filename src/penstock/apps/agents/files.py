"""The folder of the agent workers: vector indexes, archived sessions and exports are files.

Each is written beside its name and then takes its name, so that nobody reads half of one.
"""

import os
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from penstock.model.errors import PenstockError
from penstock.model.redact import without_password
from penstock.store.open import sqlite_path

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

UNFINISHED = ".part"
"""The end of the name of a file that is being written."""


class NoFolder(PenstockError):
    """A store that has no folder beside it, and none that is named."""

    def __init__(self, store: str) -> None:
        self.store = without_password(store)
        super().__init__(
            f"Files of the agent workers have no place beside {self.store}; "
            'name one: folder = "/var/lib/penstock" under [penstock.agents].'
        )


def find_folder(app: "Penstock") -> Path | None:
    """Return the folder for files, which need not exist yet; None if there is none."""
    named: str = app.extensions.settings("agents").folder
    if named:
        return Path(named).expanduser().absolute()
    url = app.settings.tables or app.settings.url
    file = sqlite_path(url) if url.startswith("sqlite://") else None
    return None if file is None else file.with_name(f"{file.stem}.agents")


def folder_of(app: "Penstock") -> Path:
    """Return the folder for files, or raise NoFolder; `write_file` makes it."""
    folder = find_folder(app)
    if folder is None:
        raise NoFolder(app.settings.tables or app.settings.url)
    return folder


def make_folder(folder: Path) -> None:
    """Make a folder that only its owner enters, and have it on disk; those above it, too."""
    if folder.is_dir():
        return
    make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_file(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Have `write(file)` fill a file, which takes its name once it is on disk whole.

    What an interrupted one left behind is overwritten.
    """
    with replacing(path) as part, part.open("r+b") as file:
        write(file)
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def replacing(path: Path) -> Generator[Path]:
    """Yield the path of an empty file, 0600, that becomes `path` when the block ends well.

    For writers that want a path of their own; the file is synced here.
    """
    make_folder(path.parent)
    part = path.with_name(f"{path.name}.{os.getpid()}{UNFINISHED}")
    os.close(os.open(part, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600))
    try:
        yield part
        descriptor = os.open(part, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)
