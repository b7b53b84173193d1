import asyncio

import pytest

from penstock.service import SELDOM_SECONDS, Seldom, Service
from penstock.testing import Signals


class Counting(Service):
    name = "counting"

    def __init__(self, interval: float = 3600) -> None:
        super().__init__(interval)
        self.signals = Signals()
        self.error: Exception | None = None

    async def run_once(self) -> None:
        self.signals.send("ran")
        if self.error is not None:
            raise self.error


async def test_starting_twice_is_one_start_and_stopping_twice_one_stop() -> None:
    service = Counting()
    await service.start()
    await service.start()
    await service.signals.wait("ran")
    await service.stop()
    await service.stop()
    assert len(service.signals.values("ran")) == 1


async def test_stopping_what_never_started_runs_nothing_and_leaves_it_able_to_start() -> None:
    service = Counting()
    await service.stop()
    assert service.signals.values("ran") == []
    await service.start()
    await service.signals.wait("ran")
    await service.stop()


async def test_a_stopped_service_can_start_again() -> None:
    service = Counting()
    for times in (1, 2, 3):
        await service.start()
        await service.signals.wait("ran", times=times)
        await service.stop()


async def test_waking_runs_the_next_pass_now() -> None:
    service = Counting()
    await service.start()
    await service.signals.wait("ran")
    service.wake()
    await service.signals.wait("ran", times=2)
    await service.stop()


@pytest.mark.parametrize("error", [RuntimeError("a bug"), OSError("no disk")])
async def test_a_pass_that_fails_is_followed_by_the_next(error: Exception) -> None:
    service = Counting(interval=0.001)
    service.error = error
    await service.start()
    await service.signals.wait("ran", times=3)
    await service.stop()


async def test_stopping_waits_until_the_running_pass_has_let_go() -> None:
    signals = Signals()

    class Slow(Service):
        async def run_once(self) -> None:
            signals.send("running")
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                signals.send("let go")

    service = Slow(1)
    await service.start()
    await signals.wait("running")
    await service.stop()
    assert signals.values("let go") == [None]


def test_a_warning_is_let_through_once_a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_000.0
    monkeypatch.setattr("penstock.service.time.monotonic", lambda: now)
    may_warn = Seldom()
    assert [may_warn(), may_warn()] == [True, False]
    now += SELDOM_SECONDS
    assert [may_warn(), may_warn()] == [True, False]
