"""A classifier of trajectories in numpy: it predicts the verdict of a task from its embedding.

It is a softmax regression. What it has learned before it keeps by elastic weight consolidation: a
parameter that mattered, by its Fisher information, is held near its former value while it learns
something new.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from penstock.apps.agents.learning.records import FAILURE, PARTIAL, SUCCESS
from penstock.model.errors import InvalidOption

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    Array = NDArray[numpy.float32]
    Labels = NDArray[numpy.int64]

CLASSES = (SUCCESS, FAILURE, PARTIAL)
RATE = 4.0
DECAY = 1e-4
AT_ONCE = 32
FEWEST = 4
STEPS = 20
"""A step is of at most 32 trajectories, and of fewer where that would leave too few steps."""


class Anchor(Struct, frozen=True):
    """What is to be kept: former parameters, how much each matters, and how strongly."""

    parameters: Any
    fisher: Any
    strength: float


class Score(Struct, frozen=True, order=True):
    """How well verdicts are predicted: first by how many, then by how sure of the right one."""

    accuracy: float
    likelihood: float
    """The mean logarithm of the probability that the right verdict was given."""


def labels_of(verdicts: Sequence[str]) -> "Labels":
    """Verdicts as numbers of classes."""
    import numpy

    return numpy.array([CLASSES.index(verdict) for verdict in verdicts], numpy.int64)


def probabilities(parameters: "Array", vectors: "Array") -> "Array":
    """The probability of each class, a row for each vector."""
    import numpy

    scores = _with_bias(vectors) @ parameters
    scores -= scores.max(axis=1, keepdims=True)
    powers = numpy.exp(scores)
    found: Array = powers / powers.sum(axis=1, keepdims=True)
    return found


def train(
    vectors: "Array",
    labels: "Labels",
    *,
    epochs: int,
    seed: int,
    begin: "Array | None" = None,
    anchor: Anchor | None = None,
    show: Callable[[int], None] | None = None,
) -> "Array":
    """Learn to predict; the same input and seed give the same parameters.

    It is a proximal descent: a step down the loss, then the exact step towards the anchor, which
    cannot overshoot however strong that is.
    """
    import numpy

    inputs = _with_bias(vectors)
    wanted = numpy.eye(len(CLASSES), dtype=numpy.float32)[labels]
    shape = (inputs.shape[1], len(CLASSES))
    parameters = numpy.zeros(shape, numpy.float32) if begin is None else begin.copy()
    if parameters.shape != shape:
        raise InvalidOption("begin", parameters.shape, f"parameters of the shape {shape}")
    chance = numpy.random.default_rng(seed)
    at_once = max(FEWEST, min(AT_ONCE, len(inputs) // STEPS))
    for epoch in range(epochs):
        rate = RATE * (1 - epoch / epochs)
        pull = _pull(anchor, rate)
        order = chance.permutation(len(inputs))
        for at in range(0, len(order), at_once):
            chosen = order[at : at + at_once]
            given = probabilities(parameters, inputs[chosen, :-1])
            slope = inputs[chosen].T @ (given - wanted[chosen]) / len(chosen)
            parameters -= rate * (slope + DECAY * parameters)
            if anchor is not None:
                parameters -= pull * (parameters - anchor.parameters)
        if show is not None:
            show(epoch + 1)
    return parameters.astype(numpy.float32)


def _pull(anchor: Anchor | None, rate: float) -> "Array | float":
    """Which share of the way back to its former value each parameter goes at a step."""
    if anchor is None:
        return 0.0
    force = rate * anchor.strength * anchor.fisher
    found: Array = force / (1 + force)
    return found


def fisher_of(parameters: "Array", vectors: "Array") -> "Array":
    """How much each parameter matters for what is predicted: the diagonal of the Fisher matrix.

    The expectation is over the verdicts that the classifier itself would give, not over those
    that were found, and is exact.
    """
    import numpy

    inputs = _with_bias(vectors)
    given = probabilities(parameters, vectors)
    # Over classes y drawn from p, the gradient of log p(y) at class c is x (1[y = c] - p_c): its
    # expected square is x² p_c (1 - p_c).
    found = (inputs**2).T @ (given * (1 - given)) / max(1, len(inputs))
    return found.astype(numpy.float32)


def score(parameters: "Array", vectors: "Array", labels: "Labels") -> Score:
    """Say how well verdicts are predicted."""
    return _score(probabilities(parameters, vectors), labels)


def guess(training: "Labels", labels: "Labels") -> Score:
    """Say how well one does who always guesses by how often each verdict was given before."""
    import numpy

    counts = numpy.bincount(training, minlength=len(CLASSES)) + 1.0
    share = (counts / counts.sum()).astype(numpy.float32)
    return _score(numpy.tile(share, (len(labels), 1)), labels)


def _score(given: "Array", labels: "Labels") -> Score:
    import numpy

    right = given[numpy.arange(len(labels)), labels]
    accuracy = float((given.argmax(axis=1) == labels).mean())
    return Score(accuracy, float(numpy.log(numpy.maximum(right, 1e-9)).mean()))


def to_bytes(parameters: "Array") -> bytes:
    """Parameters as their column holds them: little-endian float32, row by row."""
    return parameters.astype("<f4").tobytes()


def from_bytes(held: bytes) -> "Array":
    """What `to_bytes` wrote."""
    import numpy

    return numpy.frombuffer(held, "<f4").reshape(-1, len(CLASSES)).astype(numpy.float32)


def _with_bias(vectors: "Array") -> "Array":
    import numpy

    return numpy.hstack([vectors, numpy.ones((len(vectors), 1), numpy.float32)])
