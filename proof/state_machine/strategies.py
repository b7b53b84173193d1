"""What is drawn: new jobs, claims, and every way to end a lease."""

from typing import Any

from hypothesis import strategies as st

from penstock.model.failure import Failure
from penstock.model.job import KeyScope, NewJob
from penstock.model.outcome import (
    Buried,
    Cancelled,
    Completed,
    Crashed,
    Failed,
    HandedBack,
    Settlement,
    Snoozed,
)
from penstock.model.retry import ErrorClass
from penstock.store.contract import Claim
from proof.state_machine.model import Token

_BROKEN = Failure.because(ErrorClass.INTERNAL_ERROR, "Broken", "It broke.")
_POISON = Failure.because(ErrorClass.POISON, "Crashed", "Its process died.")

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
    key_scope=st.sampled_from((None, KeyScope.WHILE_PENDING, *KeyScope)),
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


WAYS = ("well", "badly", "anyhow")
"""How a worker's batch may end: all completed, all failed, or each in a way of its own."""


def every_ending(
    token: Token, now: int, type_: str = "any", result: str = '"done"'
) -> list[Settlement]:
    """A settlement of each kind under this token's fence."""
    facts: dict[str, Any] = {
        "id": token.id,
        "fence": token.fence,
        "type": type_,
        "queue": "default",
        "started_at": now,
    }
    return [
        Completed(result=result, **facts),
        Failed(failure=_BROKEN, retry_in_ms=0, **facts),
        Failed(failure=_BROKEN, retry_in_ms=1_000, spends_attempt=False, **facts),
        Snoozed(delay_ms=1_000, reason="busy", **facts),
        HandedBack(started=True, **facts),
        HandedBack(started=False, **facts),
        Crashed(failure=_POISON, **facts),
        Cancelled(reason="not needed", **facts),
        Buried(failure=_BROKEN, **facts),
    ]


def endings(way: str, every: list[Settlement]) -> st.SearchStrategy[Settlement]:
    """Those of `every_ending` that are meant by this way."""
    return st.sampled_from({"well": every[:1], "badly": every[1:2]}.get(way, every))
