"""What is drawn of gates: jobs with limit keys, limits of every scope, claims that take ahead."""

from hypothesis import strategies as st

from penstock.model.controls import EVERY, Breaker, Limit, LimitKind, LimitScope
from penstock.model.job import NewJob
from penstock.store.contract import Claim
from proof.state_machine.strategies import LEASES_MS, TYPES

# As with leases: no rate and no cool-down ends exactly at a tick.
INTERVALS_MS = (1_007, 5_007)
COOL_DOWN_MS = 3_007
GUARDED = TYPES[1:]

gate_jobs = st.builds(
    NewJob,
    id=st.just(""),
    type=st.sampled_from(TYPES),
    tenant_id=st.sampled_from(("", "acme")),
    priority=st.sampled_from((5, 1)),
    limit_key=st.sampled_from((None, "disk", "net")),
    delay_ms=st.sampled_from((0, 0, 0, 1_000)),
)

_NAMES = {
    LimitScope.TYPE: TYPES[:1],
    LimitScope.KEY: ("disk",),
    LimitScope.TENANT: ("acme",),
    LimitScope.QUEUE: ("default",),
}


@st.composite
def limits(draw: st.DrawFn) -> Limit:
    """A limit on one thing, or on each of its kind."""
    scope = draw(st.sampled_from(tuple(_NAMES)))
    kind = draw(st.sampled_from((LimitKind.CONCURRENCY, LimitKind.RATE)))
    return Limit(
        scope=scope,
        name=draw(st.sampled_from((EVERY, *_NAMES[scope]))),
        kind=kind,
        capacity=draw(st.sampled_from((1, 2, 3))),
        interval_ms=draw(st.sampled_from(INTERVALS_MS)) if kind is LimitKind.RATE else None,
        by_operator=draw(st.booleans()),
    )


breakers = st.builds(
    Breaker,
    name=st.just("api"),
    types=st.just(GUARDED),
    failures=st.sampled_from((1, 2)),
    cool_down_ms=st.just(COOL_DOWN_MS),
)

gate_claims = st.builds(
    Claim,
    owner=st.just(""),
    types=st.just(TYPES),
    limit=st.sampled_from((4, 1, 2, 6)),
    start=st.sampled_from((4, 1, 2, 0)),
    lease_ms=st.sampled_from(LEASES_MS),
    ahead=st.sampled_from((1.0, 0.0, 0.5, 2.0)),
)
