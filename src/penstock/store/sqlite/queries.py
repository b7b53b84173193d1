"""The named queries of this dialect, from the .sql files beside this module."""

from functools import cache

from penstock.store.relational.queries import load_queries


@cache
def queries() -> dict[str, str]:
    """All named queries."""
    return load_queries("penstock.store.sqlite")
