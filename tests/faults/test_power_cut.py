"""Fault 26: the power goes, and what was not synced is dropped or only partly there."""

import os
from pathlib import Path
from random import Random

import pytest

from penstock.model.states import Status
from penstock.store.contract import JobFilter
from penstock.store.sqlite import connect
from penstock.testing.clock import FakeClock
from tests.faults.support.disk import mounted
from tests.faults.support.facts import TORTURE, digest, integrity
from tests.faults.support.tape import Change, Cut, Tape, cuts
from tests.faults.support.trace import OPERATIONS, Trace
from tests.faults.support.work import opened

pytestmark = [pytest.mark.faults, pytest.mark.timeout(1800)]

SAMPLE = 30


async def test_after_a_power_cut_at_any_moment_the_store_is_whole_and_has_all_it_acknowledged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connect, "WAL_PAGES", 100)  # many checkpoints within the trace
    changes, states, clock = await record(tmp_path / "work.db")
    assert len(states) == OPERATIONS + 2
    assert sum(change.kind == "sync" for change in changes) > OPERATIONS

    moments = chosen(changes)
    checked = 0
    for cut in cuts(changes):
        if cut.after not in moments:
            continue
        # Acknowledged before the cut; the operation under way may have made it or not.
        allowed = states[max(0, cut.done - 1) : cut.done + 1]
        for luck in (None, Random(cut.after), Random(-cut.after)):
            await check(cut, luck, allowed, clock, tmp_path / "after")
            checked += 1
    assert checked == 3 * len(moments)


async def record(path: Path) -> tuple[list[Change], list[str], FakeClock]:
    tape, states = Tape(), list[str]()

    def acknowledged() -> None:
        tape.done()
        states.append(digest(path))

    with mounted(tape):
        trace = Trace(path, acknowledged)
        await trace.run()
    return tape.changes, states, trace.clock


def chosen(changes: list[Change]) -> set[int]:
    """Every moment, or a sample with those right before and after an acknowledgement."""
    everything = range(len(changes) + 1)
    if TORTURE:
        return set(everything)
    luck = Random(26)
    done = [n for n, change in enumerate(changes) if change.kind == "done"]
    return {*luck.sample(everything, SAMPLE // 2), *luck.sample(done, SAMPLE // 2)}


async def check(
    cut: Cut, luck: Random | None, allowed: list[str], clock: FakeClock, folder: Path
) -> None:
    cut.restore(folder, luck)
    path = folder / "work.db"
    async with opened(path, clock) as store:
        assert digest(path) in allowed, f"cut after change {cut.after}"
        assert integrity(path) == "ok"
        running = len(
            await store.reader.find(JobFilter(statuses=(Status.IN_PROGRESS,), limit=1000))
        )
    rebooted = FakeClock(clock.now())
    rebooted.reboot()
    async with opened(path, rebooted) as store:
        assert len(await store.upkeep.rescue()) == running
    assert sorted(os.listdir(folder)) == ["work.db"]
