"""The audit log: one chain that grows at its end only."""

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from penstock.model.audit import Entry, first_break, sealed
from penstock.store.contract import AuditFilter, Store
from penstock.testing.clock import FakeClock

Reopen = Callable[[], Awaitable[Store]]

WORDS = [
    ("ada", "job.cancel", "job:1", "acme"),
    ("ben", "job.requeue", "job:2", "acme"),
    ("ada", "jobs.cancel", "filter", ""),
    ("cli:root", "queue.pause", "queue:mail", ""),
    ("ada", "job", "job:1", "globex"),
]


def _chain(*, at: int, after: Entry | None = None) -> list[Entry]:
    chain: list[Entry] = []
    for number, (actor, action, subject, tenant_id) in enumerate(WORDS):
        after = sealed(
            after,
            at=at + number * 1_000,
            actor=actor,
            action=action,
            subject=subject,
            tenant_id=tenant_id,
            details='{"note":"ä ☃ \\u0041", "n":1.10}',
        )
        chain.append(after)
    return chain


def _seqs(entries: list[Entry]) -> list[int]:
    return [entry.seq for entry in entries]


class TestAuditLog:
    """Appending and reading on."""

    async def test_it_begins_empty(self, store: Store) -> None:
        assert await store.audit.last() is None
        assert await store.audit.page(0) == []
        assert await store.audit.find(AuditFilter()) == []

    async def test_what_was_appended_is_there_and_holds_together(
        self, store: Store, clock: FakeClock
    ) -> None:
        chain = _chain(at=clock.now())
        assert await store.audit.append(chain[:2])
        assert await store.audit.append(chain[2:])
        found = await store.audit.page(0)
        assert found == chain
        assert first_break(found) is None
        assert await store.audit.last() == chain[-1]

    async def test_nothing_is_appended_by_nothing(self, store: Store) -> None:
        assert await store.audit.append([])
        assert await store.audit.last() is None

    async def test_only_what_continues_the_end_is_appended(
        self, store: Store, clock: FakeClock
    ) -> None:
        chain = _chain(at=clock.now())
        other = _chain(at=clock.now() + 1)
        assert not await store.audit.append(chain[1:])
        assert await store.audit.append(chain[:2])
        for late in (chain[:1], chain[1:], chain[3:], other[2:]):
            assert not await store.audit.append(late)
        assert await store.audit.page(0) == chain[:2]

    async def test_of_two_who_append_at_once_one_is_told_to_seal_again(
        self, store: Store, clock: FakeClock
    ) -> None:
        chains = [_chain(at=clock.now() + n) for n in range(4)]
        told = await asyncio.gather(*(store.audit.append(chain) for chain in chains))
        assert sorted(told) == [False, False, False, True]
        assert await store.audit.page(0) == chains[told.index(True)]
        again = sealed(
            await store.audit.last(), at=clock.now(), actor="ben", action="job", subject="job:9"
        )
        assert await store.audit.append([again])
        assert first_break(await store.audit.page(0)) is None

    async def test_pages_follow_each_other_in_the_order_of_the_chain(
        self, store: Store, clock: FakeClock
    ) -> None:
        chain = _chain(at=clock.now())
        await store.audit.append(chain)
        assert await store.audit.page(0, 2) == chain[:2]
        assert await store.audit.page(2, 2) == chain[2:4]
        assert await store.audit.page(4, 2) == chain[4:]
        assert await store.audit.page(5, 2) == []

    async def test_it_outlives_a_restart(
        self, store: Store, clock: FakeClock, reopen: Reopen
    ) -> None:
        chain = _chain(at=clock.now())
        await store.audit.append(chain)
        again = await reopen()
        assert await again.audit.page(0) == chain


FOUND = [
    (AuditFilter(), [5, 4, 3, 2, 1]),
    (AuditFilter(actor="ada"), [5, 3, 1]),
    (AuditFilter(actor="ad"), []),
    (AuditFilter(action="job"), [5, 2, 1]),
    (AuditFilter(action="job.cancel"), [1]),
    (AuditFilter(action="job."), []),
    (AuditFilter(action="j%"), []),
    (AuditFilter(subject="job:1"), [5, 1]),
    (AuditFilter(tenant_id="acme"), [2, 1]),
    (AuditFilter(tenant_id=""), [4, 3]),
    (AuditFilter(actor="ada", action="job", tenant_id="acme"), [1]),
    (AuditFilter(limit=2), [5, 4]),
    (AuditFilter(before=3), [2, 1]),
    (AuditFilter(before=4, actor="ada", limit=1), [3]),
]
"""What each filter finds of five entries."""


class TestFindEntries:
    """Pages of entries, newest first."""

    @pytest.fixture
    async def start(self, store: Store, clock: FakeClock) -> int:
        """A log, and when it began."""
        assert await store.audit.append(_chain(at=clock.now()))
        return clock.now()

    async def test_a_filter_finds_only_its_own(self, store: Store, start: int) -> None:
        assert start > 0
        for where, seqs in FOUND:
            assert _seqs(await store.audit.find(where)) == seqs, where

    async def test_a_time_is_included_where_it_begins_and_not_where_it_ends(
        self, store: Store, start: int
    ) -> None:
        where = AuditFilter(since=start + 1_000, until=start + 3_000)
        assert _seqs(await store.audit.find(where)) == [3, 2]
