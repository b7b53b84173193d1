import pytest

from penstock import Penstock
from penstock.testing.plugin import app, clock, drain
from penstock.upkeep.leader import Leader

__all__ = ["app", "clock", "drain"]


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
