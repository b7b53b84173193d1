"""Where keys are: settings name a place, and the key is read there when it is needed.

`env:NAME` is a variable of the environment, `file:PATH` a file that only its owner may read, and
`keyring:SERVICE/NAME` an entry of the operating system's key store.
"""

import os
import stat
from pathlib import Path

from penstock.model.errors import MissingExtra, PenstockError

LARGEST = 10_000
PLACES = "env:NAME, file:PATH or keyring:SERVICE/NAME"


class NoKey(PenstockError):
    """A place where there is no key, or one that others can read as well."""

    def __init__(self, reference: str, problem: str) -> None:
        self.reference = reference
        self.problem = problem
        super().__init__(f"There is no key at {reference!r}: {problem}.")


def read_key(reference: str) -> str:
    """The key that a reference stands for; what holds a key itself is never shown."""
    kind, colon, where = reference.partition(":")
    if not colon or not where or kind not in _READ:
        raise NoKey(kind if colon else "…", f"a key is named by its place, as {PLACES}")
    key = _READ[kind](reference, where).strip()
    if not key:
        raise NoKey(reference, "the place is empty")
    return key


def _from_environment(reference: str, name: str) -> str:
    key = os.environ.get(name)
    if key is None:
        raise NoKey(reference, "the variable is not set")
    return key


def _from_file(reference: str, path: str) -> str:
    """Read a file, judged by what was opened: nobody changes it in between."""
    try:
        opened = os.open(Path(path).expanduser(), os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise NoKey(reference, error.strerror or "it cannot be opened") from error
    try:
        told = os.fstat(opened)
        if not stat.S_ISREG(told.st_mode):
            raise NoKey(reference, "it is no ordinary file")
        if told.st_uid != os.getuid():
            raise NoKey(reference, "the file belongs to somebody else")
        if told.st_mode & 0o077:
            mode = stat.S_IMODE(told.st_mode)
            raise NoKey(reference, f"others may read the file (mode {mode:04o}); chmod 600 it")
        return os.read(opened, LARGEST).decode("utf-8", "replace")
    finally:
        os.close(opened)


def _from_keyring(reference: str, where: str) -> str:
    try:
        import keyring
        from keyring.errors import KeyringError
    except ImportError as error:
        raise MissingExtra("publish", "keyring") from error
    service, slash, name = where.partition("/")
    if not slash or not name:
        raise NoKey(reference, "an entry is named keyring:SERVICE/NAME")
    try:
        key = keyring.get_password(service, name)
    except KeyringError as error:
        raise NoKey(reference, f"the key store refused ({type(error).__name__})") from error
    if key is None:
        raise NoKey(reference, "the key store has no such entry")
    return key


_READ = {"env": _from_environment, "file": _from_file, "keyring": _from_keyring}
