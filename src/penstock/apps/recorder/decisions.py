"""What became of changes: taken back, modified and kept, or left as they were.

Taken back within 30 seconds is rejected; changed again in a later turn, or by somebody else, is
partial; what is neither after 30 seconds is accepted. A file that is changed again within five
minutes is iterated on.
"""

from penstock.apps.recorder.changes import Change, takes_back_by_git
from penstock.apps.recorder.state import ChangeRow, Figures, Recent, State

UNDONE_MS = 30_000
AGAIN_MS = 300_000
WINDOW = 100
"""So many decisions, the latest, make the acceptance rate of a session."""

ACCEPTED, REJECTED, PARTIAL = "accepted", "rejected", "partial"


class Decisions:
    """The changes of a conversation, and what is decided about them."""

    def __init__(self, state: State) -> None:
        self.changed: dict[int, ChangeRow] = {}
        """Rows to write."""
        self.added: list[ChangeRow] = []
        """Changes of the event that was applied last."""
        self.made: list[bool] = []
        """Its decisions: whether what was done was kept."""
        self._state = state

    def add(self, change: Change, turn: int, tool: int | None, at: int) -> None:
        """Take down a change, and see what it says about those before."""
        state, again, back = self._state, False, False
        for recent in state.recent:
            row = recent.row
            if row.file_path != change.file_path:
                continue
            again = again or at - row.at <= AGAIN_MS
            if at - row.at <= UNDONE_MS and change.takes_back(recent.change):
                self._decide(recent, REJECTED)
                back = True
            elif turn != row.turn and row.decision != REJECTED:
                self._decide(recent, PARTIAL)
        state.figures.iterations += again
        state.figures.lines += change.added + change.removed
        state.changes += 1
        where = (state.changes, turn, tool)
        row = ChangeRow(*where, change.file_path, change.kind, change.added, change.removed, at)
        self.changed[row.n] = row
        self.added.append(row)
        if not back:  # what only takes something back is nothing to decide about
            state.recent.append(Recent(row, change.before, change.after))

    def command(self, line: str, at: int) -> None:
        """See whether a command line takes changes back."""
        for recent in self._state.recent:
            soon = at - recent.row.at <= UNDONE_MS
            if soon and takes_back_by_git(line, recent.row.file_path):
                self._decide(recent, REJECTED)

    def touched(self, path: str) -> None:
        """Somebody else changed a file."""
        for recent in self._state.recent:
            if recent.row.file_path == path and recent.row.decision != REJECTED:
                self._decide(recent, PARTIAL)

    def denied(self) -> None:
        """Somebody did not let a change happen."""
        self._take_down(REJECTED)

    def settle(self, at: int) -> None:
        """Accept what nobody took back in time, and forget what is long ago."""
        recent = self._state.recent
        if not recent or at - recent[0].row.at < UNDONE_MS:
            return
        for each in recent:
            if each.row.decision is None and at - each.row.at >= UNDONE_MS:
                self._decide(each, ACCEPTED)
        self._state.recent = [each for each in recent if at - each.row.at < AGAIN_MS]

    def end(self) -> None:
        """Accept all that is left: the session has ended."""
        for recent in self._state.recent:
            if recent.row.decision is None:
                self._decide(recent, ACCEPTED)

    def _decide(self, recent: Recent, decision: str) -> None:
        before = recent.row.decision
        if before == decision:
            return
        if before is None:
            self._take_down(decision)
        else:
            _count(self._state.figures, before, -1)
            _count(self._state.figures, decision, 1)
        recent.row.decision = decision
        self.changed[recent.row.n] = recent.row

    def _take_down(self, decision: str) -> None:
        figures, kept = self._state.figures, decision != REJECTED
        _count(figures, decision, 1)
        figures.window = [*figures.window[1 - WINDOW :], int(kept)]
        self.made.append(kept)


def _count(figures: Figures, decision: str, by: int) -> None:
    figures.decisions += by
    figures.accepted += by * (decision != REJECTED)
    figures.direct += by * (decision == ACCEPTED)
    figures.rejected += by * (decision == REJECTED)
    figures.partial += by * (decision == PARTIAL)
