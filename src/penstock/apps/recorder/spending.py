"""The tokens of a conversation, by turn, by model and by the agent that spent them.

An answer that is told of in parts is counted once, by its last part. A transcript tells more than
the records of telemetry do, and these more than its metrics: what a lesser source counted before
is then void.
"""

from collections.abc import Callable

from penstock.apps.recorder.moments import COUNTER, TELEMETRY, Usage
from penstock.apps.recorder.state import State, TurnRow, remember

NOTHING = (0, 0, 0, 0, 0)
LESSER = (COUNTER, TELEMETRY)
"""Sources that count for less than others, the least first."""


class Spending:
    """Counts tokens, in rows of turns and beside them."""

    def __init__(self, state: State, turn: Callable[[int], TurnRow]) -> None:
        self.added: dict[tuple[str, str], list[int]] = {}
        """Tokens to add to what was written, by model and agent."""
        self.anew = False
        """Whether what was written is void."""
        self._state = state
        self._turn = turn

    def takes(self, source: str) -> bool:
        """Say whether tokens of a source count, and forget those that a lesser one counted."""
        state = self._state
        known, offered = (_rank(each) for each in (state.counts, source))
        if state.counts and offered < known:
            return False
        if state.counts and offered > known:
            self.anew = True
            self.added.clear()
            state.tokens = list(NOTHING)
            state.responses.clear()
        state.counts = source
        return True

    def count(self, usage: Usage, turn: int, agent: str, model: str) -> None:
        """Count an answer, in place of what was said of it before."""
        before = self._state.responses.pop(usage.response, None)
        if before is not None:
            where, who, by, *counts = before
            self._add(where, who, by, [-count for count in counts])
        self._add(turn, agent, model, list(usage[1:]))
        remember(self._state.responses, usage.response, [turn, agent, model, *usage[1:]])

    def _add(self, turn: int, agent: str, model: str, counts: list[int]) -> None:
        row, state = self._turn(turn), self._state
        row.add_tokens(counts)
        row.model = row.model or model
        if not agent:
            state.model = model
        added = self.added.get((model, agent), NOTHING)
        self.added[model, agent] = [a + b for a, b in zip(added, counts, strict=True)]
        state.tokens = [a + b for a, b in zip(state.tokens, counts, strict=True)]


def _rank(source: str) -> int:
    return LESSER.index(source) if source in LESSER else len(LESSER)
