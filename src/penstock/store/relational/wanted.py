"""What a search asks of every job it looks at, in the words of the queries."""

import re
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from typing import Any

from msgspec.json import encode

from penstock.model.ids import id_prefix
from penstock.model.states import Status
from penstock.store.contract import JobFilter
from penstock.store.contract.payloads import conditions_of, holds, spellings
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
