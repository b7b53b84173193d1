"""What is drawn of flows: edges of every kind, jobs with order keys, pauses."""

from itertools import count

from hypothesis import strategies as st

from penstock.model.controls import PauseScope
from penstock.model.dependency import Edge, EdgeKind, OnFailure, OnRequeue
from penstock.model.job import NewJob
from proof.state_machine.edges import CONDITIONS
from proof.state_machine.strategies import TYPES

QUEUES = ("default", "slow")
RESULTS = ("1", '{"n": 2}', "null")
USER_KINDS = (EdgeKind.COMPLETION, EdgeKind.SUCCESS, EdgeKind.DATA, EdgeKind.CONDITIONAL)

flow_jobs = st.builds(
    NewJob,
    id=st.just(""),
    type=st.sampled_from(TYPES),
    tenant_id=st.sampled_from(("", "", "acme")),
    queue=st.sampled_from(QUEUES),
    priority=st.sampled_from((5, 1)),
    payload=st.just('{"own": 0.10}'),
    delay_ms=st.sampled_from((0, 0, 0, 1_000)),
    expires_in_ms=st.sampled_from((None, None, None, None, 2_007)),
    order_key=st.sampled_from((None, "line")),
    key=st.sampled_from((None, None, None, "order-1")),
)

pauses = st.sampled_from(
    (
        *((PauseScope.QUEUE, queue) for queue in QUEUES),
        *((PauseScope.TYPE, type_) for type_ in TYPES),
        (PauseScope.TENANT, "acme"),
    )
)


@st.composite
def edges(draw: st.DrawFn, parents: list[str], numbers: "count[int]") -> Edge:
    """An edge to one of these jobs; no two fill the same argument, unless it is a list."""
    kind = draw(st.sampled_from(USER_KINDS))
    number = next(numbers)
    listed = draw(st.booleans())
    argument = "all" if listed else f"from_{number}"
    return Edge(
        parent_id=draw(st.sampled_from(parents)),
        kind=kind,
        condition=draw(st.sampled_from(list(CONDITIONS))) if kind == "conditional" else None,
        argument=argument if kind == "data" else None,
        position=number if kind == "data" and listed else None,
        on_failure=draw(st.sampled_from(OnFailure)),
        on_requeue=draw(st.sampled_from((OnRequeue.RESTORE, OnRequeue.RESTORE, OnRequeue.LEAVE))),
    )
