import asyncio
from collections import Counter
from typing import Any

import pytest
from msgspec.structs import replace

from penstock import Penstock, Settings, Worker
from penstock.model.errors import InvalidOption
from penstock.model.job import Lease
from penstock.testing import Signals
from penstock.worker.own_limits import OwnLimits
from tests.support.places import Place
from tests.worker.running import working
from tests.worker.test_slots import a_lease


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def leases_of(*types: Any) -> list[Lease]:
    return [replace(a_lease(str(n)), type=type_.name) for n, type_ in enumerate(types)]


def test_a_type_has_as_much_room_as_it_does_not_hold(app: Penstock) -> None:
    @app.job(per_worker=3)
    async def narrow() -> None: ...

    @app.job
    async def wide() -> None: ...

    limits = OwnLimits(app.types)
    assert limits.room([], [], 2) == {}
    assert limits.room([], [], 10) == {"narrow": 3}
    held = leases_of(narrow, wide, narrow)
    assert limits.room(held[:2], held[2:], 10) == {"narrow": 1}
    assert limits.room(held, held[:1], 10) == {"narrow": 0}
    limits.granted([])
    assert limits.may_wait("narrow")
    assert not limits.may_wait("wide")
    assert limits.frees_in is None
    assert limits.room(held[:1], [], 10) == {"narrow": 2}
    limits.granted(held[:1])
    assert not limits.may_wait("narrow")


def test_no_span_holds_more_starts_than_the_rate(app: Penstock) -> None:
    @app.job(rate_per_worker="3/s")
    async def slow() -> None: ...

    clock = Clock()
    limits = OwnLimits(app.types, clock)
    for at, expected in ((100.0, 3), (100.4, 2), (100.8, 1)):
        clock.now = at
        assert limits.room([], [], 10) == {"slow": expected}
        limits.begins(*leases_of(slow))
    assert limits.room([], [], 10) == {"slow": 0}
    limits.granted([])
    assert limits.frees_in == pytest.approx(0.2)
    clock.now = 101.0
    assert limits.frees_in == 0
    assert limits.room([], [], 10) == {"slow": 1}
    assert limits.room([], leases_of(slow), 10) == {"slow": 0}
    clock.now = 101.4
    assert limits.room([], [], 10) == {"slow": 2}
    limits.granted(leases_of(slow))
    assert limits.frees_in is None


@pytest.mark.parametrize("limit", [{"per_worker": 0}, {"per_worker": "2"}, {"rate_per_worker": 5}])
def test_a_limit_that_makes_no_sense_is_refused(app: Penstock, limit: Any) -> None:
    with pytest.raises(InvalidOption):
        app.job(**limit)(lambda: None)


@pytest.mark.every_store
async def test_a_worker_holds_no_more_of_a_type_than_it_may_begin_and_goes_on_with_others(
    place: Place, signals: Signals
) -> None:
    running: Counter[str] = Counter()
    most: Counter[str] = Counter()
    async with Penstock(**place.settings, settings=Settings()) as app:

        @app.job(per_worker=2)
        async def narrow() -> None:
            await run("narrow")

        @app.job
        async def wide() -> None:
            await run("wide")

        async def run(name: str) -> None:
            running[name] += 1
            most[name] = max(most[name], running[name])
            signals.send(name)
            await gate.wait()
            running[name] -= 1

        gate = asyncio.Event()
        await app.enqueue_many([t.new() for t in (narrow, wide) for _ in range(8)])
        async with working(app, concurrency=6), working(app, concurrency=6):
            await signals.wait("narrow", times=4)
            await signals.wait("wide", times=8)
            leased = await app.find(type="narrow", status="in_progress", limit=100)
            owners = Counter(job.lease_owner for job in leased)
            assert sorted(owners.values()) == [2, 2]
            gate.set()
            await signals.wait("narrow", times=8)
        assert most["narrow"] <= 4
        assert most["wide"] == 8


@pytest.mark.every_store
async def test_what_a_rate_holds_back_is_begun_when_its_time_has_come(place: Place) -> None:
    starts: list[float] = []
    async with Penstock(**place.settings, settings=Settings()) as app:

        @app.job(rate_per_worker="4/1s")
        async def slow() -> None:
            starts.append(asyncio.get_running_loop().time())

        @app.job
        async def quick() -> None: ...

        await app.enqueue_many([t.new() for t in (slow, quick) for _ in range(6)])
        worker = Worker(app, burst=True, upkeep=False)
        await worker.run()
        assert worker.counts["completed"] == 12
    assert len(starts) == 6
    assert starts[4] - starts[0] >= 0.99
