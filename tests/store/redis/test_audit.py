"""The audit log on Redis shows what somebody did to its keys."""

from collections.abc import AsyncIterator, Iterator

import pytest

from penstock.operate.journal import Journal
from penstock.store.contract import AuditFilter, Store
from penstock.store.open import open_store
from penstock.store.redis import records
from penstock.testing.clock import FakeClock
from tests.support.redis_raw import RawKeys


@pytest.fixture
async def store(valkey_url: str) -> AsyncIterator[Store]:
    store = open_store(valkey_url, FakeClock())
    await store.open()
    yield store
    await store.close()


@pytest.fixture
def raw(valkey_url: str) -> Iterator[RawKeys]:
    raw = RawKeys(valkey_url)
    yield raw
    raw.close()


async def _write(store: Store, count: int) -> Journal:
    journal = Journal(store)
    for number in range(count):
        await journal.write("ada", "job.cancel" if number % 2 else "job.requeue", f"id-{number}")
    return journal


@pytest.mark.parametrize(
    ("written", "problem"),
    [
        ("no JSON", "it does not continue the entry before"),
        (None, "entry 3 is missing"),
    ],
)
async def test_an_entry_that_was_changed_or_removed_by_hand_is_found(
    store: Store, raw: RawKeys, written: str | None, problem: str
) -> None:
    journal = await _write(store, 5)
    assert (await journal.verify()).problem is None
    raw.ask("ZREMRANGEBYSCORE", "audit", 3, 3)
    if written is not None:
        raw.ask("ZADD", "audit", 3, written)
    verified = await journal.verify()
    assert verified.problem is not None
    assert (verified.problem.seq, verified.problem.problem) == (3, problem)
    assert len(await store.audit.find(AuditFilter())) == (4 if written is None else 5)


async def test_entries_are_found_behind_many_others(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "LOOKS", 4)
    await _write(store, 20)
    found = await store.audit.find(AuditFilter(action="job.requeue", before=12, limit=3))
    assert [entry.seq for entry in found] == [11, 9, 7]
    assert [entry.subject for entry in await store.audit.find(AuditFilter(subject="id-0"))] == [
        "id-0"
    ]
