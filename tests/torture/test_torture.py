"""The self-test: its plan is the seed's, and its audit finds what is wrong."""

import io
import json
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from rich.console import Console

from penstock.model.job import Lease
from penstock.model.outcome import Completed
from penstock.store.contract import Claim, Store
from penstock.store.open import open_store
from penstock.testing.clock import FakeClock
from penstock.torture import run, run_torture
from penstock.torture.audit import Audit, Findings
from penstock.torture.ground import known_store
from penstock.torture.plan import PER_KILL, SERVER, SUPERVISOR, Blow, make_plan
from penstock.torture.run import Remaining
from penstock.torture.work import in_loop
from proof.torture import GROUNDS

OWNER = "worker:1"


def test_a_seed_makes_one_plan_and_another_seed_another() -> None:
    assert make_plan(50, 30, seed=7) == make_plan(50, 30, seed=7)
    assert make_plan(50, 30, seed=7) != make_plan(50, 30, seed=8)


def test_a_plan_has_the_kills_asked_for_within_the_time_given() -> None:
    plan = make_plan(200, 150, seed=1)
    blows = Counter(strike.blow for strike in plan)
    assert blows == {Blow.KILL: 200, Blow.FREEZE: 40, Blow.TERM: 10, Blow.TERM_TWICE: 10}
    assert [strike.at for strike in plan] == sorted(strike.at for strike in plan)
    assert plan[-1].at == pytest.approx(150)
    assert not any(s.blow is Blow.FREEZE and s.slot == SUPERVISOR for s in plan)


def test_a_plan_without_kills_is_empty() -> None:
    assert make_plan(0, 10, seed=1) == []
    assert make_plan(0, 10, seed=1, against_server=[Blow.CRASH]) == []


def test_blows_against_a_server_come_on_top_of_the_plan_for_the_workers() -> None:
    alone = make_plan(100, 60, seed=3)
    both = make_plan(100, 60, seed=3, against_server=[Blow.CUT, Blow.CRASH])
    assert [strike for strike in both if strike.slot != SERVER] == alone
    against = [strike for strike in both if strike.slot == SERVER]
    assert Counter(strike.blow for strike in against) == {Blow.CUT: 40, Blow.CRASH: 5}
    assert [strike.at for strike in both] == sorted(strike.at for strike in both)


def test_a_store_that_a_url_names_has_no_server_to_harm(tmp_path: Path) -> None:
    with known_store("postgresql://db.example/work")(tmp_path) as place:
        assert (place.url, dict(place.harm)) == ("postgresql://db.example/work", {})
        assert place.autopsy() == []


def test_every_kind_of_store_has_its_own_ways_to_be_harmed(tmp_path: Path) -> None:
    with GROUNDS["postgres+redis"](tmp_path) as place:
        assert place.settings["url"].startswith("postgresql://")
        assert place.settings["dispatch"].startswith("redis://")
        assert place.harm.keys() == PER_KILL.keys()
        for harm in place.harm.values():
            harm()
        assert place.autopsy() == []


@pytest.mark.faults
async def test_a_run_is_not_stuck_as_long_as_its_workers_are_struck(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = iter([0, 100, 100, 130])
    monkeypatch.setattr(run, "time", SimpleNamespace(monotonic=lambda: next(now)))
    left = Remaining(store)
    assert left.stuck_for == 100
    left.excuse()
    assert left.stuck_for == 30


def test_a_run_without_harm_repeats_nothing_and_says_so_in_a_table(tmp_path: Path) -> None:
    said = io.StringIO()
    url = f"sqlite:///{tmp_path / 'own.db'}"
    code = run_torture(
        jobs=30,
        kills=0,
        seconds=0.5,
        ground=known_store(url),
        seed=5,
        console=Console(file=said, width=120),
    )
    assert code == 0
    assert "Seed 5" in said.getvalue()
    assert "Every job is accounted for." in said.getvalue()
    lines = {
        line.split()[1]: line.split()[3] for line in said.getvalue().splitlines() if "│" in line
    }
    assert (lines["acknowledged"], lines["completed"], lines["duplicates"]) == ("30", "30", "0")


@pytest.mark.faults
def test_a_run_says_its_figures_as_json_and_uses_nothing_of_the_environments_stores(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PENSTOCK_URL", "postgresql://nobody.example/work")
    monkeypatch.setenv("PENSTOCK_DISPATCH", "redis://nobody.example")
    said = io.StringIO()
    console = Console(file=said, width=40)
    assert run_torture(jobs=5, kills=0, seconds=0.2, as_json=True, console=console) == 0
    figures = json.loads(said.getvalue())
    assert (figures["acknowledged"], figures["lost"], figures["passed"]) == (5, 0, True)


# --- the audit -------------------------------------------------------------------------------


@pytest.fixture
async def store() -> AsyncIterator[Store]:
    opened = open_store("sqlite:///:memory:", FakeClock())
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def effects(tmp_path: Path) -> Path:
    return tmp_path / "effects"


async def test_the_audit_finds_nothing_wrong_with_a_job_that_ran_once(
    store: Store, effects: Path
) -> None:
    lease = await started(store, effects)
    await settle(store, lease, effects)
    found = await audit(store, lease.id, effects)
    assert (found.clean, found.completed, found.duplicates) == (True, 1, 0)


async def test_the_audit_counts_an_acknowledged_job_that_is_not_there_as_lost(
    store: Store, effects: Path
) -> None:
    found = await audit(store, "01NOSUCHJOB", effects)
    assert (found.clean, found.lost) == (False, 1)


async def test_the_audit_counts_a_job_that_never_ended_as_lost(store: Store, effects: Path) -> None:
    lease = await started(store, effects)
    assert (await audit(store, lease.id, effects)).lost == 1


async def test_the_audit_counts_a_success_without_an_effect_as_lost(
    store: Store, effects: Path
) -> None:
    lease = await started(store, effects)
    await settle(store, lease, effects, leaves=())
    assert (await audit(store, lease.id, effects)).lost == 1


async def test_the_audit_recognises_a_result_written_by_an_older_lease(
    store: Store, effects: Path
) -> None:
    lease = await started(store, effects)
    await settle(store, lease, effects, result="0")
    assert (await audit(store, lease.id, effects)).stale_writes == 1


async def test_the_audit_explains_a_repeated_execution_by_a_lease_of_a_struck_worker(
    store: Store, effects: Path
) -> None:
    lease = await started(store, effects)
    await store.upkeep.rescue(owner=OWNER)
    again = (await store.jobs.claim(claim())).leases[0]
    await settle(store, again, effects, leaves=(lease.fence, again.fence))
    found = await audit(store, lease.id, effects, struck={OWNER})
    assert (found.clean, found.duplicates, found.leases_lost) == (True, 1, 1)
    assert (await audit(store, lease.id, effects)).unexplained == 1


async def test_the_audit_takes_a_lease_that_nobody_heard_of_for_the_doing_of_a_struck_server(
    store: Store, effects: Path
) -> None:
    lease = await started(store, effects)
    await store.upkeep.rescue(owner=OWNER)
    again = (await store.jobs.claim(claim())).leases[0]
    await settle(store, again, effects)
    assert (await audit(store, lease.id, effects)).unexplained == 1
    assert (await audit(store, lease.id, effects, server_struck=True)).clean
    leave(effects, lease.id, (lease.fence, again.fence))
    assert (await audit(store, lease.id, effects, server_struck=True)).unexplained == 1


async def test_the_audit_takes_in_what_is_wrong_with_the_store_as_a_whole(store: Store) -> None:
    audit = Audit(store, set())
    audit.note([])
    assert audit.findings.clean
    audit.note(["an index lacks a row"])
    assert (audit.findings.clean, audit.findings.complaints) == (False, ["an index lacks a row"])


async def test_the_audit_does_not_explain_two_executions_under_one_lease(
    store: Store, effects: Path
) -> None:
    lease = await started(store, effects)
    await settle(store, lease, effects, leaves=(lease.fence, lease.fence))
    assert (await audit(store, lease.id, effects)).unexplained == 1


def claim() -> Claim:
    return Claim(owner=OWNER, types=[in_loop.name], limit=1, start=1, lease_ms=1_000)


async def started(store: Store, effects: Path) -> Lease:
    await store.jobs.enqueue([in_loop.new(str(effects), 0.0).job])
    return (await store.jobs.claim(claim())).leases[0]


async def settle(
    store: Store,
    lease: Lease,
    effects: Path,
    *,
    leaves: tuple[int, ...] | None = None,
    result: str | None = None,
) -> None:
    leave(effects, lease.id, (lease.fence,) if leaves is None else leaves)
    ended = Completed(
        id=lease.id,
        fence=lease.fence,
        type=lease.type,
        queue=lease.queue,
        started_at=0,
        result=result or str(lease.fence),
    )
    assert await store.jobs.settle(OWNER, [ended]) == []


def leave(effects: Path, job_id: str, fences: tuple[int, ...]) -> None:
    effects.write_text("".join(f"{job_id} 1 {fence}\n" for fence in fences))


async def audit(
    store: Store,
    job_id: str,
    effects: Path,
    struck: set[str] | None = None,
    server_struck: bool = False,
) -> Findings:
    return await Audit(store, struck or set(), server_struck=server_struck).run([job_id], effects)
