"""A look that goes only where jobs were seen before says so, and nothing is forgotten over it."""

import pytest

from penstock import Penstock
from penstock.store.postgres import claim
from penstock.testing import drain
from proof.conformance.build import a_claim, enqueue


@pytest.fixture(autouse=True)
def _every_walk_is_slow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim, "SLOW_US", 0)
    monkeypatch.setattr(claim, "HUNGRY_SHARE", 1_000_000)
    monkeypatch.setattr(claim, "MAX_SECONDS", 0.2)


async def test_a_burst_does_not_end_before_it_has_looked_everywhere(
    postgres_store_url: str,
) -> None:
    app = Penstock(postgres_store_url)

    @app.job
    async def work() -> None: ...

    async with app:
        for tenant in ("north", "south", "west"):
            await app.enqueue(work.options(tenant=tenant).new())
            assert (await drain(app)).completed == 1


async def test_a_claim_tells_whether_it_looked_everywhere(postgres_store_url: str) -> None:
    app = Penstock(postgres_store_url)
    async with app:
        await enqueue(app.store, tenant_id="north")
        first = await app.store.jobs.claim(a_claim())
        await enqueue(app.store, tenant_id="south")
        second = await app.store.jobs.claim(a_claim())
    assert (len(first.leases), first.whole) == (1, True)
    assert (len(second.leases), second.whole) == (0, False)
    assert second.next_due_in_ms is not None


def test_what_a_test_s_clock_says_does_not_depend_on_how_busy_the_machine_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    survey = claim.Survey(trusted=False)
    survey.walked(a_claim(), None, 0, 500)
    later = claim.time.monotonic() + 0.4
    monkeypatch.setattr(claim.time, "monotonic", lambda: later)
    assert survey.ask_again_in_ms == 500
