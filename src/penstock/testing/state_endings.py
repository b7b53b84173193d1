"""Every way to end a lease, as a Hypothesis strategy."""

from typing import Any

from hypothesis import strategies as st

from penstock.model.failure import Failure
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
from penstock.testing.state_model import Token

_BROKEN = Failure.because(ErrorClass.INTERNAL_ERROR, "Broken", "It broke.")
_POISON = Failure.because(ErrorClass.POISON, "Crashed", "Its process died.")
_delays = st.sampled_from((0, 1_000))


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
