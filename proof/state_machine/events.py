"""Events under everything at once: workers that die, poison, pressure, rebuilds and re-appends.

Whatever happens, once all is applied and no session is marked, what was derived is what the log
says, event by event.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, ClassVar, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from penstock.app.penstock import Penstock
from penstock.events import feed
from penstock.events.columns import SLOTS
from penstock.events.event import NewEvent, Session
from penstock.events.log import EventFilter
from penstock.events.pool import PoolWorker
from penstock.events.rebuild import rebuild_session
from penstock.model.clock import Clock
from penstock.testing.clock import FakeClock
from proof.tally import Tally, folded, totals

T = TypeVar("T")
SESSIONS = st.sampled_from(["a", "b", "c", "d"])
TYPES = st.sampled_from(["user_prompt", "tool_use", "session_end", "debug"])
SHARES = ((0, SLOTS - 1), (0, 127), (128, SLOTS - 1), (0, 63))


class EventMachine(RuleBasedStateMachine):
    """Appends events and applies them, while things go wrong."""

    open_app: ClassVar[Callable[[Clock], Penstock]]

    def __init__(self) -> None:
        super().__init__()
        self.clock = FakeClock()
        self._runner = asyncio.Runner()
        self.app: Any = type(self).open_app(self.clock)
        self.tally = Tally()
        self.consumer = self.tally.consumer(batch=3, tries=1)
        self.app.consumer.add(self.consumer)
        self.sent: list[NewEvent] = []
        self.workers: list[PoolWorker] = []
        self._do(self.app.open())
        self._do(feed.declare(self.app, self.consumer))

    def teardown(self) -> None:
        """Apply all that is left, compare, and close."""
        try:
            self._settle()
        finally:
            self._do(self.app.close())
            self._runner.close()

    @rule(names=st.lists(st.tuples(SESSIONS, TYPES), min_size=1, max_size=6))
    def append(self, names: list[tuple[str, str]]) -> None:
        """Append events."""
        now, first = self.clock.now(), len(self.sent)
        events = [
            NewEvent(
                event_type=kind,
                session_id=session,
                event_id=f"e{first + n}",
                timestamp=now,
                payload={"amount": first + n},
            )
            for n, (session, kind) in enumerate(names)
        ]
        appended = self._do(self.app.events.append_many(events))
        assert all(each.created for each in appended)
        self.sent += events

    @rule(data=st.data())
    def append_again(self, data: st.DataObject) -> None:
        """Append what was appended, as somebody does whose answer was lost."""
        if self.sent:
            event = data.draw(st.sampled_from(self.sent))
            assert not self._do(self.app.events.append(event)).created

    @rule(share=st.sampled_from(SHARES))
    def start_worker(self, share: tuple[int, int]) -> None:
        """Another worker, which may want what others hold."""
        worker = PoolWorker(self.app, self.consumer)
        worker.wanted = share
        self.workers = [*self.workers[-2:], worker]

    @rule(data=st.data())
    def work(self, data: st.DataObject) -> None:
        """A worker takes a turn."""
        if self.workers:
            worker = data.draw(st.sampled_from(self.workers))
            worker.claim_at = 0.0
            self._do(worker.turn())

    @rule(data=st.data())
    def leave(self, data: st.DataObject) -> None:
        """A worker ends in good order."""
        if self.workers:
            worker = self.workers.pop(data.draw(st.integers(0, len(self.workers) - 1)))
            self._do(worker.leave())

    @rule()
    def die(self) -> None:
        """The oldest worker is killed, and its slots are free after a while."""
        if self.workers:
            self.workers.pop(0)
            self.clock.advance(feed.LEASE_MS / 1000 + 1)

    @rule()
    def sleep(self) -> None:
        """All workers are frozen for longer than their leases."""
        self.clock.advance(feed.LEASE_MS / 1000 + 1)

    @rule(data=st.data())
    def poison(self, data: st.DataObject) -> None:
        """An event cannot be applied from now on."""
        if self.sent:
            self.tally.poison.add(data.draw(st.sampled_from(self.sent)).event_id)

    @rule()
    def mend(self) -> None:
        """All events can be applied again."""
        self.tally.poison.clear()

    @rule(priority=st.sampled_from([None, 5, 4]))
    def shed(self, priority: int | None) -> None:
        """The pressure rises or falls."""
        told = (priority, self.consumer.name)
        self._do(self.app.transact(lambda tx: tx.events.queries.run("shed", told)))

    @rule(session=SESSIONS)
    def rebuild(self, session: str) -> None:
        """A session is made anew; a poisoned one cannot be, and stays as it is."""
        try:
            self._do(rebuild_session(self.app, self.consumer, Session("", "", session)))
        except ValueError:
            assert self.tally.poison

    def _settle(self) -> None:
        self.mend()
        self.shed(None)
        self.clock.advance(feed.LEASE_MS / 1000 + 1)
        last = PoolWorker(self.app, self.consumer)
        last.wanted = SHARES[0]
        while self._do(last.turn()):
            continue
        asked = {"consumer": None, "mark": None, "limit": 100}
        marked = self._do(self.app.read(lambda tx: tx.events.queries.rows("marked", asked)))
        for _, *session, _, _, _, _ in marked:
            self._do(rebuild_session(self.app, self.consumer, Session(*session)))
        log = self._do(self.app.events.find(EventFilter(limit=10_000)))
        assert [each.event_id for each in log] == [each.event_id for each in self.sent]
        assert self._do(totals(self.app)) == folded(log)
        letters = self._do(self.app.read(lambda tx: tx.events.queries.rows("count_dead")))
        assert letters == []

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return self._runner.run(work)
