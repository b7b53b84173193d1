from penstock.model.controls import LimitScope
from penstock.model.job import Lease
from penstock.store.contract import Slots
from penstock.worker.running import RunningSlots

TYPE, KEY = (LimitScope.TYPE, "work"), (LimitScope.KEY, "k")


def a_lease(job_id: str, limit_key: str | None = "k") -> Lease:
    return Lease(
        id=job_id,
        fence=1,
        type="work",
        queue="default",
        priority=5,
        payload="{}",
        attempts=0,
        snoozes=0,
        rescues=0,
        max_retries=3,
        retry_delay_ms=None,
        backoff_multiplier=None,
        timeout_ms=1000,
        expires_at=None,
        checkpoint=None,
        tenant_id="",
        workspace_id=None,
        parent_job_id=None,
        key=None,
        metadata=None,
        trace_context=None,
        created_at=0,
        queued_at=0,
        started_at=None,
        limit_key=limit_key,
    )


def slots(allowed: Slots, *running: Lease) -> RunningSlots:
    made = RunningSlots(lambda: running)
    made.allow(allowed)
    return made


def test_without_a_limit_everything_starts() -> None:
    assert slots({}).allows(a_lease("1"))


def test_a_lease_waits_until_one_of_its_kind_has_ended() -> None:
    made = slots({TYPE: 1})
    first, second = a_lease("1"), a_lease("2")
    made.take(first)
    assert not made.allows(second)
    made.hold(second)
    assert made.next() is None
    made.free(first)
    assert made.next() is second
    assert made.held() == []


def test_a_lease_obeys_all_of_its_limits() -> None:
    made = slots({TYPE: 5, KEY: 0})
    assert not made.allows(a_lease("1"))
    assert made.allows(a_lease("2", limit_key=None))


def test_a_limit_that_comes_counts_what_runs_already() -> None:
    running = a_lease("1")
    made = slots({}, running)
    made.allow({TYPE: 1})
    assert not made.allows(a_lease("2"))
    made.free(running)
    assert made.allows(a_lease("2"))


def test_a_limit_that_comes_holds_for_leases_that_wait_already() -> None:
    made = slots({TYPE: 0})
    lease = a_lease("1")
    made.hold(lease)
    made.allow({TYPE: 1, KEY: 0})
    assert made.next() is None
    made.allow({TYPE: 1, KEY: 1})
    assert made.next() is lease


def test_a_limit_that_goes_lets_all_start() -> None:
    made = slots({TYPE: 0})
    made.hold(a_lease("1"))
    made.hold(a_lease("2"))
    made.allow({})
    assert [lease.id for lease in (made.next(), made.next()) if lease] == ["1", "2"]


def test_lost_leases_are_forgotten() -> None:
    made = slots({TYPE: 0})
    first, second = a_lease("1"), a_lease("2")
    made.hold(first)
    made.hold(second)
    made.drop({("1", 1), ("2", 9)})
    assert made.held() == [second]
    assert made.clear() == [second]
