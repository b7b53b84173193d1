"""What is told of a job that ended because of a parent, before it could run."""

from penstock.model.dependency import Edge, Outcome
from penstock.model.failure import Failure
from penstock.model.retry import ErrorClass
from penstock.model.states import Status


def orphaned(edge: Edge, outcome: Outcome, parent: Status) -> Failure:
    """The failure of a child whose edge was not satisfied; a requeue looks at its code."""
    if outcome is Outcome.NOT_MET:
        code = "ConditionNotMet"
        told = f"The result of job {edge.parent_id} does not meet its condition: {edge.condition}"
    else:
        code = "ParentFailed"
        told = f"Job {edge.parent_id}, which it was to run after, ended as {parent}."
    return Failure.because(ErrorClass.UNKNOWN, code, told)
