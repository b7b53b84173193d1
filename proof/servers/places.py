"""Directories for servers: short enough for the path of a socket, open to who runs the server."""

import os
import shutil
import stat
import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from penstock.model.errors import PenstockError
from proof.servers.account import Account

CANDIDATES = ("/tmp", "/var/tmp", "/dev/shm")
SHORT = 40
"""A socket's path has about 100 characters, and a server adds its own name."""


class NoPlaceForServer(PenstockError):
    """A directory that the user who runs the server cannot enter."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        super().__init__(
            f"The server cannot use {directory}: PostgreSQL refuses to run as root, and the user "
            "nobody may not enter it; name a directory below /tmp, or none."
        )


class NotOurs(PenstockError):
    """A directory for the things of this user that another user has made."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        super().__init__(
            f"{directory} belongs to another user or may be written by others; remove it."
        )


def temporary(account: Account) -> Path:
    """Make a directory that lives as long as its server."""
    made = Path(tempfile.mkdtemp(prefix="penstock-", dir=_parent(account)))
    account.own(made)
    return made


def given(directory: Path, account: Account) -> Path:
    """Make the directory a caller chose, or say why it will not do."""
    directory = directory.absolute()
    directory.mkdir(parents=True, exist_ok=True)
    if not account.may_enter(directory):
        raise NoPlaceForServer(directory)
    return directory


def cache(account: Account) -> Path:
    """The directory that outlives this process and holds what takes long to make.

    One for each day: systems remove what is old from there, and not always all of it at once.
    """
    place = _parent(account) / f"penstock-servers-{os.geteuid()}"
    place.mkdir(mode=0o755, exist_ok=True)
    # Another user of this host may have made it first, to have us run what lies there.
    found = place.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o022:
        raise NotOurs(place)
    today = place / datetime.now(UTC).date().isoformat()
    if not today.exists():
        for old in sorted(place.iterdir())[:-1]:
            remove(old)
        today.mkdir(mode=0o755, exist_ok=True)
    return today


@contextmanager
def workshop(account: Account) -> Generator[Path, None, None]:
    """A directory to make something in that is then put into its place."""
    made = temporary(account)
    try:
        yield made
    finally:
        remove(made)


def put(made: Path, place: Path) -> None:
    """Move what was made to its place in one step, unless another process was there first."""
    try:
        made.rename(place)
    except OSError:
        if not place.exists():
            raise


def remove(directory: Path) -> None:
    """Remove a directory and all that is left in it."""
    shutil.rmtree(directory, ignore_errors=True)


def _parent(account: Account) -> Path:
    for candidate in (tempfile.gettempdir(), *CANDIDATES):
        path = Path(candidate)
        if len(candidate) <= SHORT and path.is_dir() and account.may_enter(path):
            return path
    raise NoPlaceForServer(Path(tempfile.gettempdir()))
