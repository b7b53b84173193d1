"""Sessions that were put off are made anew when the pressure is over, and some are tried at random.

Both replay the log, and so run where the consumer's code is: in one of the processes that consume.
"""

import random
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import structlog

from penstock.events.consumer import Applying, Consumer
from penstock.events.enrichment import NotEnriched, prepared_with
from penstock.events.event import Event, Session
from penstock.events.pressure import Level, level
from penstock.events.rebuild import Moved, clear, rebuild_session, stand_still, to_replay
from penstock.model.redact import redact
from penstock.model.store_errors import StoreClosed, StoreFull, StoreUnavailable

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

log = structlog.get_logger("penstock.events")

AT_ONCE = 50
SAMPLE = 5
RECENT = 100_000
LONGEST = 2_000
"""A longer session is not tried: the store would wait for it."""

_AWAY = (StoreUnavailable, StoreFull, StoreClosed)


class _Undo(Exception):
    """Ends a transaction that was a trial; `same` is what it found."""

    def __init__(self, same: bool = True) -> None:
        self.same = same


class MakingAnew:
    """Makes a consumer's sessions anew that were put off or lack an enrichment, in order."""

    def __init__(self, app: "Penstock", consumer: Consumer) -> None:
        self._app = app
        self._consumer = consumer
        self._failures: Counter[Session] = Counter()

    async def run_once(self) -> int:
        """Make some anew, if it is calm; how many."""
        stands = await level(self._app)
        name = self._consumer.name
        if stands.level is not Level.GREEN or name in stands.sheds:
            return 0
        asked = (name, AT_ONCE)
        rows = await self._app.read(
            lambda tx: tx.events.queries.rows("sessions_to_make_anew", asked)
        )
        return sum([await self._make(Session(*row)) for row in rows])

    async def _make(self, session: Session) -> bool:
        """Make one anew; an event that fails again and again is given up alone."""
        consumer = self._consumer
        left_out: dict[int, str] = {}
        while True:
            try:
                # What its events make due was put off with them; nothing is enqueued twice.
                await rebuild_session(self._app, consumer, session, enqueue=True, without=left_out)
            except (*_AWAY, NotEnriched):
                return False
            except Exception as error:
                self._failures[session] += 1
                if self._failures[session] < consumer.tries:
                    log.info("not_made_anew", consumer=consumer.name, error=redact(repr(error)))
                    return False
                failing = await self._failing(session, left_out)
                if failing is None:
                    return False
                event, reason = failing
                left_out[event.sequence] = reason
                log.warning("event_parked", consumer=consumer.name, event_id=event.event_id)
            else:
                del self._failures[session]
                return True

    async def _failing(
        self, session: Session, left_out: dict[int, str]
    ) -> tuple[Event, str] | None:
        """The first event of a session that cannot be applied, and why."""
        _, found = await to_replay(self._app, self._consumer, session)
        events = [event for event in found if event.sequence not in left_out]
        applied, failed = 0, len(events)
        error = await self._error(session, events)
        if error is None:
            return None
        while failed - applied > 1:
            middle = (applied + failed) // 2
            found_error = await self._error(session, events[:middle])
            if found_error is None:
                applied = middle
            else:
                failed, error = middle, found_error
        return events[failed - 1], redact(f"{type(error).__name__}: {error}")[:1_000]

    async def _error(self, session: Session, events: Sequence[Event]) -> Exception | None:
        """Apply events to a clean slate and undo it; what went wrong."""
        consumer = self._consumer

        def trial(tx: Any) -> None:
            applying = Applying(tx, consumer.name, enqueues=False)
            clear(applying, consumer, session)
            if events:
                consumer.apply(applying, prepared)
            raise _Undo

        try:
            prepared, _ = await prepared_with(self._app, consumer, events)
            await self._app.transact(trial)
        except _Undo:
            return None
        except _AWAY:
            raise
        except Exception as error:
            return error
        return None


async def consistency(app: "Penstock", consumer: Consumer, most: int = SAMPLE) -> float | None:
    """Replay some recent sessions and compare: the share that is as the log says; None if none was.

    The consumer says what it derived of a session by `digest(tx, session)`; all is undone again.
    """
    if consumer.reset is None:
        return None
    results = [await _is_consistent(app, consumer, each) for each in await _sample(app, most)]
    tried = [each for each in results if each is not None]
    return sum(tried) / len(tried) if tried else None


async def _sample(app: "Penstock", most: int) -> set[Session]:
    def question(tx: Any) -> set[Session]:
        queries = tx.events.queries
        head = int(queries.value("latest"))
        chosen = [random.randint(max(1, head - RECENT), max(1, head)) for _ in range(most)]
        rows = [queries.row("session_from", (each,)) for each in chosen]
        return {Session(*row) for row in rows if row is not None}

    return await app.read(question)


async def _is_consistent(app: "Penstock", consumer: Consumer, session: Session) -> bool | None:
    """Whether a session is as the log says; None if it is known not to be, or moves meanwhile."""
    digest = consumer.digest
    position, events = await to_replay(app, consumer, session, most=LONGEST + 1)
    if digest is None or len(events) > LONGEST:
        return None
    prepared, left_out = await prepared_with(app, consumer, events)

    def trial(tx: Any) -> None:
        known_by = (consumer.name, session.tenant_id, session.platform, session.session_id)
        if tx.events.queries.row("mark_of", known_by) is not None:
            raise Moved
        stand_still(tx, consumer, session, position)
        applying = Applying(tx, consumer.name, enqueues=False)
        before = digest(applying, session)
        clear(applying, consumer, session)
        if events:
            consumer.apply(applying, prepared)
        raise _Undo(before == digest(applying, session))

    if left_out:
        return None
    try:
        await app.transact(trial)
    except _Undo as undone:
        return undone.same
    except Moved:
        return None
    return None
