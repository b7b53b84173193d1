"""Looking for jobs by all that is known of them, a bounded number of them at a time."""

import time
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from penstock.model.job import Job
from penstock.store.contract import Found, FoundIds, JobFilter
from penstock.store.relational import lookup
from penstock.store.relational.transaction import Transaction
from penstock.store.relational.wanted import Wanted

LOOKS = 20_000
"""So many jobs in a row are looked at for one page; it may end before it is full."""

SCATTERED_LOOKS = 4_000
"""So many where each lies in another place."""

PLACES = 20_000
"""Up to so many jobs are found by their status; for more, the index costs more than it saves."""

SCATTERED_SECONDS = 0.05
"""After so long no more of them are begun with: where a disk is slow, a page has fewer."""

FIRST_LOOKS = 500
"""So many of the newest are looked at before an index is asked: they often fill the page."""

AT_ONCE = 500

Narrow = Callable[[Transaction, Wanted], list[Any] | None]
"""All places where a job that fits can be, in no order; none when they are not few."""

_NEWEST = ("search_newest", "end_of_newest")
_CHILDREN = ("search_children", "end_of_children")
_SCHEDULED = ("search_scheduled", "end_of_scheduled")


def by_status(tx: Transaction, wanted: Wanted, most: int | None = None) -> list[Any] | None:
    """From the indexes of the states; living jobs are few, mostly."""
    if wanted.statuses is None:
        return None
    most = PLACES if most is None else most
    asked = wanted.bindings | wanted.flags() | {"looks": most}
    places = [row[0] for row in tx.rows("of_status", asked)]
    return places if len(places) < most else None


def find(tx: Transaction, where: JobFilter, narrow: Narrow = by_status) -> list[Job]:
    """As many jobs as were asked for, or all there are, newest first, however long that takes."""
    wanted = Wanted(tx, where)
    if not wanted.indexed:
        rows = tx.rows("find_jobs", wanted.bindings | {"limit": where.limit})
        return lookup.jobs(tx, rows)
    ids: list[str] = []
    before = where.before
    while len(ids) < where.limit:
        rest = replace(where, before=before, limit=where.limit - len(ids))
        page = search_ids(tx, rest, narrow)
        ids += page.ids
        before = page.before
        if before is None:
            break
    return lookup.get(tx, ids)


def search(tx: Transaction, where: JobFilter, narrow: Narrow = by_status) -> Found:
    """A page of jobs, newest first."""
    found = search_ids(tx, where, narrow)
    return Found(lookup.get(tx, found.ids), found.before)


def search_ids(tx: Transaction, where: JobFilter, narrow: Narrow = by_status) -> FoundIds:
    """The ids of such a page."""
    wanted = Wanted(tx, where)
    if where.parent_job_id is not None:
        return _walk(tx, wanted, where.limit, _CHILDREN, SCATTERED_LOOKS)
    if where.schedule_id is not None:
        return _walk(tx, wanted, where.limit, _SCHEDULED, SCATTERED_LOOKS)
    first = _walk(tx, wanted, where.limit, _NEWEST, FIRST_LOOKS)
    if first.before is None or len(first.ids) >= where.limit:
        return first
    places = narrow(tx, wanted)
    if places is not None:
        return _pick(tx, wanted, where.limit, places)
    return _walk(tx, wanted, where.limit, _NEWEST, LOOKS)


def _walk(
    tx: Transaction, wanted: Wanted, limit: int, queries: tuple[str, str], looks: int
) -> FoundIds:
    """Look at jobs in their order."""
    query, end_of = queries
    end = tx.row(end_of, wanted.bindings | {"looks": looks})
    asked = wanted.bindings if end is None else wanted.bindings | {"above": end[0]}
    most = max(limit + 1, AT_ONCE) if wanted.verify else limit + 1
    rows = tx.rows(query, asked | {"limit": most})
    found = wanted.verified(rows)
    if len(found) > limit:
        return FoundIds(found[:limit], found[limit - 1])
    if len(rows) == most:
        return FoundIds(found, rows[-1][0])
    return FoundIds(found, None if end is None else end[1])


def _pick(tx: Transaction, wanted: Wanted, limit: int, places: list[Any]) -> FoundIds:
    """Look at the jobs in these places, the newest first."""
    places.sort(reverse=True)
    found: list[str] = []
    looked, began = 0, time.monotonic()
    while looked < len(places):
        listed = tx.listed(places[looked : looked + AT_ONCE])
        asked = wanted.bindings | {"listed": listed, "limit": AT_ONCE}
        found += wanted.verified(tx.rows("search_listed", asked))
        looked += AT_ONCE
        if len(found) > limit:
            return FoundIds(found[:limit], found[limit - 1])
        if looked >= SCATTERED_LOOKS or time.monotonic() - began > SCATTERED_SECONDS:
            break
    if looked >= len(places):
        return FoundIds(found, None)
    return FoundIds(found, tx.value("id_at", (places[looked - 1],)))
