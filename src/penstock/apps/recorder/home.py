"""The recorder's home: one folder per user, whatever folder an assistant works in.

A hook loads this: it imports next to nothing.
"""

import os

FOLDER = "PENSTOCK_HOME"
DATABASE = "recorder.db"
SPOOL = "recorder.spool"
LAUNCHER = "penstock-hook.py"
KEY = "sanitiser.key"


def home() -> str:
    """The folder: `PENSTOCK_HOME`, or `penstock` in the user's data folder (XDG)."""
    named = os.environ.get(FOLDER, "")
    if named:
        return os.path.abspath(os.path.expanduser(named))
    data = os.environ.get("XDG_DATA_HOME", "")
    if not os.path.isabs(data):
        data = os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(data, "penstock")


def place(name: str) -> str:
    """A file in the home."""
    return os.path.join(home(), name)


def url(makes: bool = False) -> str:
    """The store in the home, as `--url` takes it; `makes` the home if it is not there yet."""
    from urllib.parse import quote

    if makes:
        make_home()
    return f"sqlite:///{quote(place(DATABASE))}"


def make_home() -> str:
    """The folder, made for its owner alone if it is not there yet."""
    folder = home()
    os.makedirs(folder, 0o700, exist_ok=True)
    return folder


def real_path(path: str) -> str:
    """A path from which the sanitiser took the name of the user, which is this one's."""
    own = os.path.expanduser("~")
    parts = path.split("/")
    depth = own.count("/")
    if len(parts) > depth and parts[depth].startswith(("[REDACTED_", "<")):
        return "/".join([own, *parts[depth + 1 :]])
    return os.path.expanduser(path)
