"""The measured example of consolidation: with the penalty less is forgotten."""

import pytest

from proof import ewc


async def test_with_the_penalty_old_tasks_are_remembered_and_new_ones_learned(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(ewc, "COUNT", 100)
    monkeypatch.setattr(ewc, "STRENGTHS", (0.0, ewc.STRENGTH))
    before, found = await ewc.measure(seed=1)
    free, held = found[0.0], found[ewc.STRENGTH]
    assert before > 0.9
    assert held[0] > free[0] + 0.05, found
    assert held[1] > 0.8, found
