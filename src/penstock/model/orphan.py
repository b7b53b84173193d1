"""What is told of a job that ended because of a parent, before it could run."""

from penstock.model.dependency import Edge, Outcome
from penstock.model.failure import Failure
from penstock.model.retry import ErrorClass
from penstock.model.states import Status


def orphaned(edge: Edge, outcome: Outcome, parent: Status, *, foreign: bool = False) -> Failure:
    """The failure of a child whose edge was not satisfied; a requeue looks at its code.

    Nothing is told of a `foreign` parent: whoever may see the child may not see that one.
    """
    named = "a job of another tenant" if foreign else f"job {edge.parent_id}"
    if outcome is Outcome.NOT_MET:
        code = "ConditionNotMet"
        told = f"The result of {named} does not meet its condition: {edge.condition}"
    else:
        code = "ParentFailed"
        how = "did not complete" if foreign else f"ended as {parent}"
        told = f"{named[0].upper()}{named[1:]}, which it was to run after, {how}."
    return Failure.because(ErrorClass.UNKNOWN, code, told)
