import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from penstock import Penstock
from penstock.model.store_errors import StoreUnavailable
from penstock.testing import FakeClock
from penstock.upkeep.leader import Leader


async def test_one_of_two_leads_until_its_term_runs_out(app: Penstock, clock: FakeClock) -> None:
    one, two = Leader(app, "one", term=15), Leader(app, "two", term=15)
    await one.run_once()
    await two.run_once()
    assert (one.leads, two.leads) == (True, False)
    clock.advance(14)
    await one.run_once()
    clock.advance(14)
    await two.run_once()
    assert (one.leads, two.leads) == (True, False)
    clock.advance(1)
    assert not one.leads
    await two.run_once()
    await one.run_once()
    assert (one.leads, two.leads) == (False, True)


async def test_a_leader_that_stops_lets_the_other_lead_at_once(app: Penstock) -> None:
    one, two = Leader(app, "one"), Leader(app, "two")
    await one.run_once()
    await one.stop()
    await two.run_once()
    assert (one.leads, two.leads) == (False, True)


async def test_whoever_does_not_lead_cannot_resign_for_the_leader(app: Penstock) -> None:
    one, two = Leader(app, "one"), Leader(app, "two")
    await one.run_once()
    await two.run_once()
    await two.stop()
    await two.run_once()
    assert not two.leads


async def test_a_leader_that_cannot_reach_the_store_stops_leading(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader = Leader(app, "one")
    await leader.run_once()

    async def away(*args: Any) -> bool:
        raise StoreUnavailable("work.db", "the disk is away")

    monkeypatch.setattr(app.store.upkeep, "lead", away)
    with pytest.raises(StoreUnavailable):
        await leader.run_once()
    assert not leader.leads


async def test_a_wall_clock_that_jumps_changes_no_leader(app: Penstock, clock: FakeClock) -> None:
    one, two = Leader(app, "one"), Leader(app, "two")
    await one.run_once()
    clock.set_wall("2036-01-01T00:00:00Z")
    await two.run_once()
    assert (one.leads, two.leads) == (True, False)


async def test_a_leader_leads_on_while_it_asks_for_its_next_term(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    leader, asked, answer = Leader(app, "a:1"), asyncio.Event(), asyncio.Event()
    await leader.run_once()
    lead = app.store.upkeep.lead

    async def slow(*term: Any) -> bool:
        asked.set()
        await answer.wait()
        return await lead(*term)

    monkeypatch.setattr(app.store.upkeep, "lead", slow)
    with capture_logs() as logs:
        asking = asyncio.gather(leader.run_once(), leader.run_once())
        await asked.wait()
        assert leader.leads
        answer.set()
        await asking
    assert leader.leads
    assert logs == []
