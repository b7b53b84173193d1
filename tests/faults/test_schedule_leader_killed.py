"""Fault 29: clocks change, and the leader is killed at the very slot."""

import signal
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import datetime, timedelta
from itertools import cycle
from pathlib import Path
from typing import NamedTuple

import pytest

from penstock import Penstock, Settings
from tests.faults.support.children import Child
from tests.faults.support.facts import TORTURE, integrity, query
from tests.faults.support.scheduler import ToldClock

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

HALF_HOUR_MS = 1_800_000
OVERDUE_MS = 3_000
SLOTS = 10
POLICIES = ("skip", "one", "all")
SHORT_TERM, LONG_TERM = 0.3, 600


class Night(NamedTuple):
    """Five hours of UTC in which a zone's clocks change, and when a fixed time runs in them."""

    zone: str
    begin: str
    fixed: str
    runs: str


# Worked out by hand from the zones' rules, not by the evaluator under test.
NIGHTS = (
    Night("America/Sao_Paulo", "2018-02-18T00:00Z", "30 23 * * *", "2018-02-18T01:30Z"),
    Night("America/Sao_Paulo", "2018-11-04T00:00Z", "30 0 * * *", "2018-11-04T03:00Z"),
    Night("Europe/Berlin", "2026-03-28T22:00Z", "30 2 * * *", "2026-03-29T01:00Z"),
    Night("Australia/Lord_Howe", "2026-10-03T13:00Z", "15 2 * * *", "2026-10-03T15:30Z"),
    Night("Europe/Berlin", "2026-10-24T22:00Z", "30 2 * * *", "2026-10-25T00:30Z"),
    Night("America/New_York", "2026-11-01T03:00Z", "30 1 * * *", "2026-11-01T05:30Z"),
    Night("America/New_York", "2027-03-14T04:00Z", "30 2 * * *", "2027-03-14T07:00Z"),
)
SHORT = (NIGHTS[1], NIGHTS[3], NIGHTS[5])


def ms(text: str) -> int:
    return int(datetime.fromisoformat(text).timestamp() * 1000)


class Crew:
    """Processes that watch for ticks; whoever is killed is replaced."""

    def __init__(self, path: Path, stack: ExitStack, term: float = SHORT_TERM) -> None:
        self._path = path
        self._stack = stack
        self._term = term
        self._names: Iterator[int] = iter(range(1_000))
        self.killed = 0
        self._children = [self._start() for _ in range(3)]

    def _start(self) -> Child:
        child = self._stack.enter_context(
            Child("scheduler", self._path, f"host:{next(self._names)}", self._term)
        )
        assert child.answer() == "ready"
        return child

    def look(self, now: int, *, die: str | None = None) -> bool:
        """All make a pass at the same wall time, the leader may die in it; whether one leads."""
        led = False
        for child in self._children:
            child.tell({"now": now, "die": die})
        for place, child in enumerate(self._children):
            try:
                led |= child.answer()
            except AssertionError:
                assert child.wait() == -signal.SIGKILL
                self.killed += 1
                self._children[place] = self._start()
        return led

    def wait_for_leader(self, now: int) -> None:
        """Look until somebody leads: the term of one that died lasts for a while."""
        while not self.look(now):
            pass


async def plan(path: Path, night: Night) -> dict[str, list[int]]:
    """Schedule a night, and say which ticks each schedule has in it."""
    begin = ms(night.begin)
    app = Penstock(f"sqlite:///{path}", settings=Settings(), clock=ToldClock(begin))

    @app.job
    async def work(word: str) -> None: ...

    end = datetime.fromisoformat(night.begin) + timedelta(milliseconds=SLOTS * HALF_HOUR_MS)
    every = [begin + n * HALF_HOUR_MS for n in range(1, SLOTS + 1)]
    expected: dict[str, list[int]] = {}
    async with app:
        for policy in POLICIES:
            for cron, ticks in ((night.fixed, [ms(night.runs)]), ("*/30 * * * *", every)):
                name = f"{night.begin}/{policy}/{len(ticks)}"
                view = await app.schedule(
                    name,
                    work.new("{{ tick }}"),
                    cron=cron,
                    zone=night.zone,
                    misfire=policy,
                    end=end,
                )
                expected[view.schedule.id] = ticks
    return expected


def fired(path: Path, schedule_id: str) -> list[int]:
    sql = "SELECT scheduled_at FROM jobs WHERE schedule_id = ? ORDER BY scheduled_at"
    return [row[0] for row in query(path, sql, schedule_id)]


async def test_a_leader_killed_at_the_slot_costs_no_tick_and_doubles_none(tmp_path: Path) -> None:
    path, expected = tmp_path / "work.db", dict[str, list[int]]()
    places = cycle(("inside", "before", "after"))
    with ExitStack() as stack:
        crew = Crew(path, stack)
        for night in NIGHTS if TORTURE else SHORT:
            expected |= await plan(path, night)
            for slot in range(1, SLOTS + 1):
                tick = ms(night.begin) + slot * HALF_HOUR_MS
                at_the_slot = tick == ms(night.runs) or TORTURE
                crew.wait_for_leader(tick - 1)
                crew.look(tick, die=next(places) if at_the_slot else None)
                crew.look(tick + OVERDUE_MS)
        killed = crew.killed

    assert killed >= len(SHORT)
    assert {one: fired(path, one) for one in expected} == expected
    assert integrity(path) == "ok"


@pytest.mark.quick
async def test_while_a_dead_leader_s_term_lasts_the_others_fire_each_tick_once(
    tmp_path: Path,
) -> None:
    path, night = tmp_path / "work.db", NIGHTS[2]
    with ExitStack() as stack:
        crew = Crew(path, stack, LONG_TERM)
        expected = await plan(path, night)
        for slot in range(1, SLOTS + 1):
            tick = ms(night.begin) + slot * HALF_HOUR_MS
            crew.look(tick, die="inside" if slot == 1 else None)
            crew.look(tick + OVERDUE_MS)
    assert crew.killed == 1
    assert {one: fired(path, one) for one in expected} == expected


async def test_after_a_night_nobody_watched_each_policy_is_kept_by_many_at_once(
    tmp_path: Path,
) -> None:
    path = tmp_path / "work.db"
    late = SLOTS * HALF_HOUR_MS + 600_000
    with ExitStack() as stack:
        crew = Crew(path, stack)
        for night in NIGHTS if TORTURE else SHORT[:2]:
            expected = await plan(path, night)
            for _ in range(3):
                crew.look(ms(night.begin) + late)
            for schedule_id, ticks in expected.items():
                [(policy,)] = query(
                    path, "SELECT misfire FROM job_schedules WHERE id = ?", schedule_id
                )
                kept = {"all": ticks, "one": ticks[-1:], "skip": []}[policy]
                assert fired(path, schedule_id) == kept
