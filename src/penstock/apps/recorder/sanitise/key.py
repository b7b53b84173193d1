"""The key that makes hashes of what was found: a file that only its user can read."""

import os

from penstock.apps.recorder.home import KEY, make_home, place

SIZE = 32


def home_key() -> bytes:
    """The key of this user, made when it is first asked for."""
    path = place(KEY)
    try:
        return _read(path)
    except FileNotFoundError:
        pass
    make_home()
    _write(path, os.urandom(SIZE))
    return _read(path)  # that of whoever came first


def _read(path: str) -> bytes:
    with open(path, "rb") as file:
        key = file.read(SIZE)
    if len(key) != SIZE:
        raise ValueError(f"{path} holds no key of {SIZE} bytes; remove it, and a new one is made.")
    return key


def _write(path: str, key: bytes) -> None:
    """Put a key in its place whole, unless there is one."""
    beside = f"{path}.{os.getpid()}"
    file = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(file, key)
        os.fsync(file)
    finally:
        os.close(file)
    try:
        os.link(beside, path)
    except FileExistsError:
        pass
    finally:
        os.unlink(beside)
