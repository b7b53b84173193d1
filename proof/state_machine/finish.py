"""The rule that nothing waits for ever."""

from hypothesis.stateful import precondition, rule

from penstock.model.outcome import Settlement
from penstock.store.contract import Claim
from proof.state_machine.ground import Ground, Model
from proof.state_machine.model import MAX_RESCUES, Token
from proof.state_machine.strategies import LEASES_MS, TYPES, every_ending

ROUNDS = 200
MANY = 4
ANYTHING = Claim(owner="", types=TYPES, limit=4, start=4, lease_ms=LEASES_MS[0])


class Finish(Ground[Model]):
    """A machine that can let a store come to rest."""

    @rule()
    @precondition(lambda self: self._alive() >= MANY)
    def run_to_the_end(self) -> None:
        """Everything is let go on, a worker does all there is, and then every job has ended."""
        self._let_everything_go_on()
        self.clock.advance(max(LEASES_MS) / 1000 + 1)
        self._rescue(None, MAX_RESCUES)
        for _ in range(ROUNDS):
            wait_ms = self._do_what_there_is()
            if wait_ms is None:
                break
            self.clock.advance(wait_ms / 1000)
        left = [job for job in self.model.jobs.values() if not job.status.terminal]
        assert not left, f"these wait for ever: {left}"

    def _let_everything_go_on(self) -> None:
        """Take away what an operator has put in the way."""

    def _do_what_there_is(self) -> int | None:
        """Run all that can be run now; when to come back, if ever."""
        owner = self.workers[0]
        while True:
            claimed = self._claim(owner, ANYTHING)
            if not claimed.leases:
                return claimed.next_due_in_ms
            done = [self._well_done(Token(i.id, i.fence, owner)) for i in claimed.leases]
            self._settle_with(owner, done)

    def _well_done(self, token: Token) -> Settlement:
        return every_ending(token, self._now, self.model.jobs[token.id].new.type)[0]
