"""Followers in somebody's hands: looked at, dropped, missed when nobody reads for them."""

import pytest

from penstock import Penstock
from penstock.model.not_found import FollowerNotFound
from penstock.model.states import Status
from penstock.operate.actor import Operator
from penstock.operate.erase import erase
from penstock.operate.health import HealthStatus, check_health, follower_checks
from penstock.store.contract import AuditFilter, FollowerState
from penstock.testing import FakeClock
from proof.conformance.build import enqueue

DAY_MS = 86_400_000


def a_follower(**changes: int) -> FollowerState:
    return FollowerState(name="links.clicks", statuses=(Status.COMPLETED,), **changes)


async def test_a_follower_is_listed_and_dropped_on_record(app: Penstock) -> None:
    await app.store.changes.follow("links.clicks", [Status.QUEUED])
    await enqueue(app.store)
    [state] = await app.followers.states()
    assert (state.name, state.waiting) == ("links.clicks", 1)
    followers = Operator(app, "user:ann").followers
    await followers.drop("links.clicks")
    assert await app.followers.states() == []
    with pytest.raises(FollowerNotFound, match=r"no follower 'links\.clicks'"):
        await followers.drop("links.clicks")
    entries = await app.store.audit.find(AuditFilter())
    assert [(entry.action, entry.subject) for entry in entries] == [
        ("follower.drop.refused", "follower:links.clicks"),
        ("follower.drop", "follower:links.clicks"),
        ("follower.drop", "follower:links.clicks"),
    ]


@pytest.mark.parametrize(
    ("state", "status"),
    [
        (a_follower(), HealthStatus.HEALTHY),
        (a_follower(waiting=100_000, oldest_at=DAY_MS), HealthStatus.HEALTHY),
        (a_follower(waiting=100_001, oldest_at=DAY_MS), HealthStatus.DEGRADED),
        (a_follower(waiting=1, oldest_at=DAY_MS - 1), HealthStatus.DEGRADED),
    ],
)
def test_a_follower_is_behind_when_much_waits_for_it_or_for_long(
    state: FollowerState, status: HealthStatus
) -> None:
    assert follower_checks([state], 2 * DAY_MS)["followers"].status is status


def test_a_check_of_a_follower_that_is_behind_says_how_to_drop_it() -> None:
    check = follower_checks([a_follower(waiting=2, oldest_at=0)], 2 * DAY_MS)["followers"]
    assert "links.clicks (2 changes to be told)" in check.detail
    assert "`penstock followers drop links.clicks`" in check.detail
    assert check.figures == {"waiting": {"links.clicks": 2}}


async def test_health_looks_at_followers_where_there_are_any(
    app: Penstock, clock: FakeClock
) -> None:
    settings = app.settings.replace(min_workers=0)
    assert "followers" not in (await check_health(app.store, settings)).checks
    await app.store.changes.follow("links.clicks", [Status.PENDING])
    assert (await check_health(app.store, settings)).status is HealthStatus.HEALTHY
    await enqueue(app.store, delay_ms=5 * DAY_MS)
    clock.advance(seconds=86_401)
    found = await check_health(app.store, settings)
    assert found.checks["followers"].status is found.status is HealthStatus.DEGRADED


async def test_changes_of_a_tenant_are_erased_with_it_even_after_its_jobs(app: Penstock) -> None:
    await app.store.changes.follow("links.clicks", list(Status))
    kept = await enqueue(app.store)
    job_id = await enqueue(app.store, tenant_id="acme")
    gone = await enqueue(app.store, tenant_id="acme", created_by="ada")
    await erase(app, tenant="acme", person="ada")
    told = {change.job_id for change in await app.store.changes.waiting("links.clicks")}
    assert told == {kept, job_id}
    assert gone not in told
    await erase(app, tenant="acme")
    told = {change.job_id for change in await app.store.changes.waiting("links.clicks")}
    assert told == {kept}
