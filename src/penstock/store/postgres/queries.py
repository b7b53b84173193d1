"""The named queries of this dialect, from the .sql files beside this module.

They are written with `?` and `:name` like those of the other dialects; psycopg wants `%s`.
"""

import re
from functools import cache

from penstock.store.relational.queries import load_queries

_NAMED = re.compile(r"(?<![:\w]):([a-z_]\w*)")


@cache
def queries() -> dict[str, bytes]:
    """All named queries; as bytes, which psycopg takes for our own words and not a user's."""
    found = load_queries("penstock.store.postgres")
    return {name: _for_psycopg(sql) for name, sql in found.items()}


def _for_psycopg(sql: str) -> bytes:
    return _NAMED.sub(r"%(\1)s", sql.replace("%", "%%")).replace("?", "%s").encode()
