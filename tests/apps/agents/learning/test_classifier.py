"""The classifier: it learns, the same each time, and with a penalty it does not forget."""

from typing import Any

import numpy
import pytest

from penstock.apps.agents.learning.classifier import (
    Anchor,
    fisher_of,
    from_bytes,
    guess,
    labels_of,
    probabilities,
    score,
    to_bytes,
    train,
)
from penstock.model.errors import InvalidOption

DIMENSIONS = 16


def task(seed: int, good: int, bad: int, shared: int = 0, count: int = 200) -> tuple[Any, Any]:
    """Vectors that point one way or another, and verdicts that go with it."""
    chance = numpy.random.default_rng(seed)
    labels = chance.integers(0, 2, count)
    vectors = chance.standard_normal((count, DIMENSIONS)).astype(numpy.float32) * 0.15
    vectors[numpy.arange(count), numpy.where(labels == 0, good, bad)] += 1
    vectors[:, shared] += 0.5
    return vectors / numpy.linalg.norm(vectors, axis=1, keepdims=True), labels


def test_what_was_learned_is_predicted_and_the_same_each_time() -> None:
    vectors, labels = task(1, good=1, bad=2)
    first = train(vectors, labels, epochs=5, seed=7)
    assert numpy.array_equal(first, train(vectors, labels, epochs=5, seed=7))
    unseen, wanted = task(2, good=1, bad=2)
    assert score(first, unseen, wanted).accuracy > 0.95
    assert score(first, unseen, wanted) > guess(labels, wanted)
    assert numpy.allclose(probabilities(first, unseen).sum(axis=1), 1, atol=1e-5)


def test_with_a_penalty_less_is_forgotten() -> None:
    old, old_labels = task(1, good=1, bad=2)
    new, new_labels = task(2, good=2, bad=3)
    before = train(old, old_labels, epochs=5, seed=7)
    fisher = fisher_of(before, old)
    free = train(new, new_labels, epochs=5, seed=7, begin=before)
    held = train(
        new, new_labels, epochs=5, seed=7, begin=before, anchor=Anchor(before, fisher, 30.0)
    )
    assert score(held, old, old_labels).accuracy > score(free, old, old_labels).accuracy + 0.2
    assert score(held, new, new_labels).accuracy > 0.6


def test_a_penalty_without_bound_moves_nothing_that_matters() -> None:
    vectors, labels = task(1, good=1, bad=2)
    before = train(vectors, labels, epochs=5, seed=7)
    fixed = Anchor(before, numpy.ones_like(before), 1e9)
    after = train(*task(2, good=2, bad=1), epochs=5, seed=7, begin=before, anchor=fixed)
    assert numpy.allclose(before, after, atol=1e-4)


def test_fisher_is_the_expected_square_of_the_gradient() -> None:
    vectors, labels = task(1, good=1, bad=2, count=50)
    parameters = train(vectors, labels, epochs=2, seed=7)
    given = probabilities(parameters, vectors)
    inputs = numpy.hstack([vectors, numpy.ones((50, 1))])
    expected = numpy.zeros_like(parameters, dtype=float)
    for n in range(50):
        for verdict in range(3):
            slope = numpy.outer(inputs[n], numpy.eye(3)[verdict] - given[n])
            expected += given[n, verdict] * slope**2 / 50
    assert numpy.allclose(fisher_of(parameters, vectors), expected, atol=1e-5)


def test_parameters_are_kept_as_bytes() -> None:
    parameters = train(*task(1, good=1, bad=2), epochs=1, seed=7)
    assert numpy.array_equal(from_bytes(to_bytes(parameters)), parameters)
    assert len(to_bytes(parameters)) == (DIMENSIONS + 1) * 3 * 4


def test_parameters_of_another_shape_are_refused() -> None:
    vectors, labels = task(1, good=1, bad=2)
    with pytest.raises(InvalidOption, match=r"parameters of the shape \(17, 3\)"):
        train(vectors, labels, epochs=1, seed=7, begin=numpy.zeros((5, 3), numpy.float32))


def test_verdicts_are_numbered() -> None:
    assert labels_of(["failure", "success", "partial"]).tolist() == [1, 0, 2]
