import pytest

from penstock import Penstock
from penstock.alerts.judge import critical_types
from penstock.apps.agents.options import OPTIONS
from proof.conformance.build import OWNER, buried, claim_one

CRITICAL = ["audit-export", "data-deletion", "webhook-dispatch"]


def test_three_types_are_critical(app: Penstock) -> None:
    assert sorted(name for name, options in OPTIONS.items() if options.critical) == CRITICAL


@pytest.mark.parametrize("name", CRITICAL)
async def test_the_end_of_a_critical_job_is_told_with_its_type_job_and_tenant(
    agents: Penstock, name: str
) -> None:
    assert critical_types(agents) == CRITICAL
    job = agents.types[name].defaults
    [made] = await agents.store.jobs.enqueue(
        [type(job)(id="01K00000000000000000000000", type=name, tenant_id="north")]
    )
    lease = await claim_one(agents.store, types=(name,))
    await agents.store.jobs.settle(OWNER, [buried(lease)])
    await agents.alerts.critical.look()
    alert = await agents.alerts.get(f"critical_dead_letter:{name}")
    assert (alert.state, alert.severity) == ("firing", "critical")
    for word in (name, made.id, "tenant north"):
        assert word in alert.text
