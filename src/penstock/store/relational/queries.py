"""Queries and migrations from a dialect's .sql files, with their state guards filled in.

`{from cancel}` in a query becomes the list of states the transition table lets that action
start from, so the guards cannot drift from `model/states.py`. `{part fits}` becomes the text that
follows `-- part: fits`, which several queries share.
"""

import re
from importlib.resources import files

from penstock.model.states import sources

_NAME = re.compile(r"^-- (name|part): (\w+)[^\n]*\n", re.MULTILINE)
_PART = re.compile(r"\{part (\w+)\}")
_GUARD = re.compile(r"\{from (\w+)\}")


def load_queries(package: str) -> dict[str, str]:
    """All named queries in the `sql` folder of a package."""
    found: dict[str, dict[str, str]] = {"name": {}, "part": {}}
    for file in sorted(files(package).joinpath("sql").iterdir(), key=lambda f: f.name):
        if file.name.endswith(".sql"):
            pieces = _NAME.split(file.read_text("utf-8"))[1:]
            for kind, name, sql in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
                found[kind][name] = with_guards(sql)
    parts = found["part"]
    return {
        name: _PART.sub(lambda match: parts[match[1]], sql) for name, sql in found["name"].items()
    }


def load_migrations(package: str) -> dict[int, str]:
    """Version to SQL, from files named 0001_core.sql and so on in the folder `migrations`."""
    found = {
        int(file.name[:4]): file.read_text("utf-8")
        for file in files(package).joinpath("migrations").iterdir()
        if file.name.endswith(".sql")
    }
    return dict(sorted(found.items()))


def with_guards(sql: str) -> str:
    """A query or a migration with the states of the transition table written in."""
    return _GUARD.sub(lambda match: _states(match[1]), sql).strip().rstrip(";")


def _states(action: str) -> str:
    return ", ".join(f"'{status}'" for status in sources(action))
