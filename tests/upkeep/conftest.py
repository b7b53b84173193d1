import pytest

from penstock import Penstock
from penstock.upkeep.leader import Leader


@pytest.fixture
async def leader(app: Penstock) -> Leader:
    chosen = Leader(app, "leader", term=100_000_000)
    await chosen.run_once()
    return chosen


@pytest.fixture
async def follower(app: Penstock, leader: Leader) -> Leader:
    other = Leader(app, "follower")
    await other.run_once()
    return other
