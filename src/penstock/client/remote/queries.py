"""Filters as the API takes them."""

from typing import TYPE_CHECKING

from penstock.model.clock import iso
from penstock.model.errors import InvalidOption

if TYPE_CHECKING:
    from penstock.store.contract import JobFilter


_NAMES = {
    "type": "type",
    "queue": "queue",
    "category": "category",
    "tenant_id": "tenant",
    "workspace_id": "workspace",
    "created_by": "created_by",
    "tag": "tag",
    "parent_job_id": "parent",
    "schedule_id": "schedule",
    "lease_owner": "worker",
    "text": "text",
}


def query_of(where: "JobFilter") -> list[tuple[str, str]]:
    """The words of a query, without its page."""
    query: list[tuple[str, str]] = [("status", status) for status in dict.fromkeys(where.statuses)]
    for name, word in _NAMES.items():
        given = getattr(where, name)
        if given is not None:
            query.append((word, given))
    for word, moment in (("since", where.since), ("until", where.until)):
        if moment is not None:
            query.append((word, iso(moment)))
    for path, expected in where.payload:
        if "=" in path:
            raise InvalidOption("payload", path, "a path without =, over a server")
        query.append(("payload", f"{path}={expected}"))
    return query
