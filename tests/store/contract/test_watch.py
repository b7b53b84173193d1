"""Watching jobs, whichever store keeps them."""

from collections.abc import AsyncIterator, Sequence

import pytest
from msgspec.structs import replace

from penstock.model.job import Job
from penstock.model.states import Status
from penstock.store.contract import Store
from penstock.store.contract.store import watch
from penstock.store.open import open_store
from penstock.testing.clock import FakeClock
from proof.conformance.build import enqueue


class Rings:
    """A subscription that is always woken."""

    def __init__(self) -> None:
        self.closed = False

    async def wait(self, timeout: float) -> bool:
        return True

    def close(self) -> None:
        self.closed = True


@pytest.fixture
async def job() -> AsyncIterator[Job]:
    store: Store = open_store("sqlite:///:memory:", FakeClock())
    await store.open()
    yield (await store.reader.get([await enqueue(store)]))[0]
    await store.close()


async def test_a_wake_up_that_changed_nothing_tells_nothing(job: Job) -> None:
    ended = replace(job, status=Status.COMPLETED)
    answers = iter([job, job, job, ended])
    rings = Rings()

    async def get(ids: Sequence[str]) -> list[Job]:
        return [next(answers)]

    assert [told async for told in watch(get, lambda: rings, [job.id])] == [job, ended]
    assert rings.closed


async def test_a_job_that_is_gone_is_watched_no_more(job: Job) -> None:
    answers = iter([[job], []])
    asked: list[Sequence[str]] = []

    async def get(ids: Sequence[str]) -> list[Job]:
        asked.append(ids)
        return next(answers)

    assert [told async for told in watch(get, Rings, [job.id, job.id])] == [job]
    assert asked == [[job.id], [job.id]]
