"""Counters of extensions: told of what comes in at every way in, and of what did not after all."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from examples.links import check, extension
from penstock import Context, Penstock, Settings, Worker
from penstock.extension import Extension, NotKnownYet, Way
from penstock.model.errors import NotAdmitted, QueueFull
from penstock.model.job import Job, NewJob
from penstock.testing import FakeClock
from penstock.upkeep.schedules import fire_due
from tests.support.places import Place

URL = "http://127.0.0.1:1/"


class Turnstile:
    """Counts, up to a number; before it first does, it has to look."""

    def __init__(self, _: Penstock) -> None:
        self.counted = 0
        self.most = 100
        self.ways: Counter[Way] = Counter()
        self.looked = 0
        self.closed = 0

    async def look(self) -> None:
        self.looked += 1

    def take(self, jobs: Sequence[NewJob], way: Way) -> str | None:
        if not self.looked:
            raise NotKnownYet(self.look)
        if self.counted + len(jobs) > self.most:
            return "The hall is full."
        self.counted += len(jobs)
        self.ways[way] += len(jobs)
        return None

    def give_back(self, jobs: Sequence[NewJob]) -> None:
        self.counted -= len(jobs)

    def refusal(self, job: NewJob | Job) -> str | None:
        if not self.looked:
            raise NotKnownYet(self.look)
        return "The hall is full." if self.counted >= self.most else None

    async def close(self) -> None:
        self.closed += 1


def turnstile_of(app: Penstock) -> Turnstile:
    [(_, found)] = app.extensions.counters
    assert isinstance(found, Turnstile)
    return found


def opened(place: Place, clock: FakeClock | None = None) -> Penstock:
    counting: Extension = replace(extension, counter=Turnstile)
    return Penstock(settings=Settings(**place.settings), extensions=[counting], clock=clock)


async def test_a_counter_is_told_of_every_way_in(place: Place, clock: FakeClock) -> None:
    async with opened(place, clock) as app:
        turnstile = turnstile_of(app)

        @app.job
        async def parent(ctx: Context) -> None:
            await ctx.enqueue(check.new("", URL))

        await parent.enqueue()
        assert turnstile.looked == 1, "it was looked up first, and then asked again"
        await app.enqueue_many([check.new("", f"{URL}{n}") for n in range(3)])
        await Worker(app, types=["parent"], burst=True, upkeep=False).run()
        await app.schedule("often", check.new("", URL), every=60)
        clock.advance(seconds=61)
        assert await fire_due(app) == 1
        assert turnstile.ways == {Way.ENQUEUE: 4, Way.CHILD: 1, Way.SCHEDULE: 1}
    assert turnstile.closed == 1


async def test_what_a_counter_refuses_comes_in_nowhere(place: Place, clock: FakeClock) -> None:
    async with opened(place, clock) as app:
        turnstile = turnstile_of(app)
        turnstile.most = 2
        with pytest.raises(NotAdmitted, match=r"by 'links': The hall is full\.$"):
            await app.enqueue_many([check.new("", f"{URL}{n}") for n in range(3)])
        assert await app.find() == []
        turnstile.most = 0
        if app.store.tables is not None:
            with pytest.raises(NotAdmitted):
                await app.transact(lambda tx: tx.enqueue(check.new("", URL)))
        await app.schedule("often", check.new("", URL), every=60)
        clock.advance(seconds=61)
        assert await fire_due(app) == 0
        assert await app.find() == []
        assert turnstile.counted == 0


async def test_a_job_that_is_there_already_is_not_counted(place: Place) -> None:
    async with opened(place) as app:
        keyed = check.options(key="one")
        for _ in range(3):
            await keyed.enqueue("", URL)
        assert turnstile_of(app).counted == 1
        assert turnstile_of(app).ways == {Way.ENQUEUE: 3}


async def test_what_cannot_be_written_is_given_back(place: Place) -> None:
    async with opened(place) as app:
        turnstile = turnstile_of(app)
        await app.controls.set_limit(queue="links", depth=1)

        def broken(tx: Any) -> None:
            tx.enqueue(check.new("", URL))
            raise ValueError("on second thoughts")

        if app.store.tables is not None:
            with pytest.raises(ValueError, match="second thoughts"):
                await app.transact(broken)
        assert turnstile.counted == 0
        await check.enqueue("", URL)
        with pytest.raises(QueueFull):
            await app.enqueue(check.new("", URL), wait=False)
        assert turnstile.counted == 1


async def test_a_counted_job_that_is_one_too_many_does_not_run_again(place: Place) -> None:
    async with opened(place) as app:
        turnstile = turnstile_of(app)
        handle = await check.enqueue("", URL)
        await app.cancel(handle.id)
        await app.requeue(handle.id)
        await app.cancel(handle.id)
        turnstile.most, turnstile.looked = 1, 0
        assert "The hall is full" in str((await app.explain(handle.id)).reasons)
        with pytest.raises(NotAdmitted, match="hall is full"):
            await app.requeue(handle.id)
        assert turnstile.counted == 1


def test_a_counter_is_asked_without_an_event_loop(place: Place) -> None:
    app = opened(place)
    for n in range(3):
        app.sync.enqueue(check.new("", f"{URL}{n}"))
    assert turnstile_of(app).counted == 3
    app.sync.close()
