"""Looking for jobs by all that is known of them, a bounded number of them at a time."""

import re
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from typing import Any

from msgspec.json import encode
from msgspec.structs import replace

from penstock.model.ids import id_prefix
from penstock.model.job import Job
from penstock.model.states import Status
from penstock.store.contract import Found, FoundIds, JobFilter
from penstock.store.contract.reader import conditions_of, holds, spellings
from penstock.store.relational import lookup
from penstock.store.relational.transaction import Transaction, readable

SKEW_MS = 3_600_000
"""So far the time in an id may lie from the time its job was enqueued at."""

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WILD = re.compile(r"[%_\\]")


class Wanted:
    """A filter as bindings, and what of it Python decides: the values in a payload."""

    __slots__ = ("_conditions", "bindings", "statuses")

    def __init__(self, tx: Transaction, where: JobFilter) -> None:
        self.statuses = frozenset(where.states) or None
        self._conditions = conditions_of(where.payload)
        needle, other = _needles(self._conditions)
        listed = None if self.statuses is None else tx.listed([s.value for s in self.statuses])
        self.bindings: dict[str, Any] = {
            "statuses": listed,
            "type": where.type,
            "queue": where.queue,
            "category": where.category,
            "tenant_id": where.tenant_id,
            "workspace_id": where.workspace_id,
            "created_by": where.created_by,
            "parent_job_id": where.parent_job_id,
            "schedule_id": where.schedule_id,
            "lease_owner": where.lease_owner,
            "tag": where.tag,
            "written_tag": encode(where.tag).decode(),
            "since": where.since,
            "until": where.until,
            "needle": needle,
            "other": other,
            **_patterns(where.text),
            "verify": bool(self._conditions),
        }
        below, above = tx.row("search_bounds", _bounds(where)) or (None, None)
        self.bindings |= {"below": below, "above": above}

    @property
    def verify(self) -> bool:
        """Whether what the queries find must be looked at again."""
        return bool(self._conditions)

    @property
    def indexed(self) -> bool:
        """Whether an index may tell where such jobs are."""
        of = (self.statuses, self.bindings["parent_job_id"], self.bindings["schedule_id"])
        return self.verify or any(given is not None for given in of)

    def verified(self, rows: Sequence[tuple[str, bytes | str | None]]) -> list[str]:
        """The ids of those whose payload holds what is expected, if anything is."""
        if not self._conditions:
            return [job_id for job_id, _ in rows]
        return [
            job_id
            for job_id, payload in rows
            if payload is not None and holds(readable(payload), self._conditions)
        ]

    def flags(self) -> dict[str, bool]:
        """Each status, and whether it is wanted."""
        return {status.value: status in (self.statuses or ()) for status in Status}

    def document(self) -> str | None:
        """What a payload must contain, as one object; none where the paths do not tell."""
        ends = {tuple(path) for path, _ in self._conditions}
        if len(ends) < len(self._conditions) or any(_runs_into(path, ends) for path in ends):
            return None
        found: dict[str, Any] = {}
        for path, value in self._conditions:
            inner = found
            for step in path[:-1]:
                inner = inner.setdefault(step, {})
            inner[path[-1]] = value
        return encode(found).decode() if found else None


def _runs_into(path: tuple[str, ...], ends: set[tuple[str, ...]]) -> bool:
    """Whether a path leads through a list, perhaps, or through the end of another."""
    return any(map(str.isdigit, path)) or any(path[:n] in ends for n in range(1, len(path)))


def _bounds(where: JobFilter) -> dict[str, str | None]:
    """Ids begin with their time, so a time is also a bound on them."""
    first = None if where.since is None else id_prefix(where.since - SKEW_MS)
    last = None if where.until is None else id_prefix(where.until + SKEW_MS)
    return {"before": where.before, "first": first, "last": last}


def _patterns(text: str | None) -> dict[str, str | None]:
    """Up to four patterns; of a text in ASCII there is one."""
    told = [] if text is None else [f"%{_WILD.sub(_plain, each)}%" for each in spellings(text)]
    names = ("text", "second_text", "third_text", "fourth_text")
    return dict(zip_longest(names, told))


def _plain(wild: re.Match[str]) -> str:
    return "\\" + wild[0]


def _needles(conditions: Sequence[tuple[list[str], Any]]) -> tuple[str | None, str | None]:
    """Two pieces of text that a payload cannot do without, however it is written."""
    told = sorted({*_told_by(conditions)}, key=len, reverse=True)
    return (*told, None, None)[0], (*told, None, None)[1]


def _told_by(conditions: Sequence[tuple[list[str], Any]]) -> Iterator[str]:
    for path, value in conditions:
        if _PLAIN.fullmatch(path[-1]):
            yield f'"{path[-1]}"'
        if isinstance(value, str) and _PLAIN.fullmatch(value):
            yield f'"{value}"'
        elif type(value) is int and value % 10:  # 1000 may be written as 1e3
            yield str(abs(value))


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
