"""The named queries of this dialect, from the .sql files beside this module.

They are written with `?` and `:name` like those of the other dialects; psycopg wants `%s`.
"""

import re
from functools import cache

from penstock.model.job import Job
from penstock.store.relational.transaction import load_queries

_NAMED = re.compile(r"(?<![:\w]):([a-z_]\w*)")
_PLACEHOLDER = re.compile(rf"\?|{_NAMED.pattern}")
# A program may have asyncpg encode its documents, and ours are texts already.
_DOCUMENT = re.compile(r"(\$\d+)::(json\b|jsonb\b)")


_DOCUMENTS = (
    *("payload", "result", "error_details", "checkpoint", "metadata", "trace_context", "progress"),
)
_TIMES = ("lease_until", *(name for name in Job.__struct_fields__ if name.endswith("_at")))
_READ_AS = {
    **{name: f"{name}::text" for name in _DOCUMENTS},
    **{name: f"ms({name})" for name in _TIMES},
    "limit_key": "nullif(limit_key, '')",
    "tags": "to_json(tags)::text",
}


@cache
def queries() -> dict[str, bytes]:
    """All named queries; as bytes, which psycopg takes for our own words and not a user's."""
    found = load_queries("penstock.store.postgres", _READ_AS)
    return {name: for_psycopg(sql) for name, sql in found.items()}


@cache
def numbered_queries() -> dict[str, tuple[str, list[str]]]:
    """All named queries as the server itself takes them, and the names of what is bound."""
    found = load_queries("penstock.store.postgres", _READ_AS)
    return {name: number_placeholders(sql) for name, sql in found.items()}


def number_placeholders(sql: str) -> tuple[str, list[str]]:
    """A query with `$1` for `?` or `:name`; which names the numbers stand for."""
    names: list[str] = []

    def number(found: re.Match[str]) -> str:
        name = found[1]
        if name is None or name not in names:
            names.append(name or "")
            return f"${len(names)}"
        return f"${names.index(name) + 1}"

    return _DOCUMENT.sub(r"\1::text::\2", _PLACEHOLDER.sub(number, sql)), names


def for_psycopg(sql: str) -> bytes:
    """A query as psycopg takes it."""
    return _NAMED.sub(r"%(\1)s", sql.replace("%", "%%")).replace("?", "%s").encode()
