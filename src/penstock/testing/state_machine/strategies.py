"""What is drawn: new jobs, claims, and every way to end a lease."""

from typing import Any

from hypothesis import strategies as st

from penstock.model.failure import Failure
from penstock.model.job import KeyScope, NewJob
from penstock.model.retry import ErrorClass
from penstock.model.settlement import (
    Buried,
    Cancelled,
    Completed,
    Crashed,
    Failed,
    HandedBack,
    Settlement,
    Snoozed,
)
from penstock.store.contract import Claim
from penstock.testing.state_machine.model import Token

_BROKEN = Failure.because(ErrorClass.INTERNAL_ERROR, "Broken", "It broke.")
_POISON = Failure.because(ErrorClass.POISON, "Crashed", "Its process died.")
_delays = st.sampled_from((0, 1_000))

TYPES = ("build", "mail")

# Leases, expiries and key windows end between two ticks: whether a moment belongs to what it ends
# is the store's own affair.
TICKS_MS = (100, 1_000, 3_000, 12_000)
LEASES_MS = (2_007, 10_007)

new_jobs = st.builds(
    NewJob,
    id=st.just(""),
    type=st.sampled_from(TYPES),
    tenant_id=st.sampled_from(("", "acme")),
    priority=st.sampled_from((1, 5, 10)),
    delay_ms=st.sampled_from((0, 0, 0, 1_000, 5_000)),
    expires_in_ms=st.sampled_from((None, None, None, 2_007)),
    key=st.sampled_from((None, "order-1")),
    key_scope=st.sampled_from((None, *KeyScope)),
    key_window_ms=st.just(3_007),
)

claims = st.builds(
    Claim,
    owner=st.just(""),
    types=st.sampled_from((TYPES, TYPES, TYPES[:1])),
    limit=st.sampled_from((4, 1, 2)),
    start=st.sampled_from((0, 1, 2)),
    lease_ms=st.sampled_from(LEASES_MS),
    max_priority=st.sampled_from((None, None, 5)),
    type_lease_ms=st.just({"mail": 5_007}),
)


def endings(token: Token, now: int) -> st.SearchStrategy[Settlement]:
    """A settlement of any kind under this token's fence."""
    facts: dict[str, Any] = {
        "id": st.just(token.id),
        "fence": st.just(token.fence),
        "type": st.just("any"),
        "queue": st.just("default"),
        "started_at": st.just(now),
    }
    failed = st.just(_BROKEN)
    return st.one_of(
        st.builds(Completed, result=st.just('"done"'), **facts),
        st.builds(
            Failed, failure=failed, retry_in_ms=_delays, spends_attempt=st.booleans(), **facts
        ),
        st.builds(Snoozed, delay_ms=_delays, reason=st.just("busy"), **facts),
        st.builds(Cancelled, reason=st.just("not needed"), **facts),
        st.builds(Buried, failure=failed, **facts),
        st.builds(Crashed, failure=st.just(_POISON), **facts),
        st.builds(HandedBack, started=st.booleans(), **facts),
    )
