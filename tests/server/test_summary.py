"""What is looked up is kept for a moment, and looked up once for all."""

import asyncio

import pytest

from penstock.server import summary
from penstock.server.summary import Fresh


class Looks:
    """Counts the looks; each takes so many seconds of a clock that only it moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.seen = 0
        self.now = 100.0
        self.takes = 0.0
        monkeypatch.setattr(summary, "monotonic", lambda: self.now)

    async def look(self) -> int:
        await asyncio.sleep(0)
        self.now += self.takes
        self.seen += 1
        return self.seen


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    return Looks(monkeypatch)


async def test_ten_who_ask_at_once_share_one_look(looks: Looks) -> None:
    kept = Fresh(looks.look, 2.0)
    assert await asyncio.gather(*(kept.get() for _ in range(10))) == [1] * 10
    looks.now += 1.9
    assert await kept.get() == 1
    looks.now += 0.1
    assert await kept.get() == 2


@pytest.mark.parametrize(("takes", "kept_for"), [(0.01, 2.0), (0.5, 10.0), (5.0, 15.0)])
async def test_the_longer_a_look_takes_the_longer_it_is_kept(
    looks: Looks, takes: float, kept_for: float
) -> None:
    kept = Fresh(looks.look, 2.0)
    looks.takes, began = takes, looks.now
    await kept.get()
    looks.now = began + kept_for - 0.1
    assert await kept.get() == 1
    looks.now = began + kept_for
    assert await kept.get() == 2


async def test_a_look_that_fails_is_not_kept(looks: Looks) -> None:
    async def fail() -> int:
        if await looks.look() == 1:
            raise LookupError
        return looks.seen

    kept = Fresh(fail, 2.0)
    with pytest.raises(LookupError):
        await kept.get()
    assert await kept.get() == 2
