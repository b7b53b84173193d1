"""The alerts of an installation: which stand, which did, and who knows of them."""

from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from msgspec import MsgspecError
from msgspec.json import decode, encode

from penstock.model.alert import Alert, AlertState, acknowledged, paid
from penstock.model.errors import AlertNotFiring
from penstock.model.not_found import AlertNotFound
from penstock.model.redact import redacted
from penstock.operate.actor import PROGRAM, Actor
from penstock.operate.notices import hand_over
from penstock.store.contract.records import every

if TYPE_CHECKING:
    from penstock.alerts.judge import Critical
    from penstock.app.penstock import Penstock
    from penstock.model.clock import Clock
    from penstock.store.contract import Record
    from penstock.store.contract.records import Records

KIND = "alert"
NOTE_LIMIT = 1_000

Change = Callable[[Alert], Alert]


class Alerts:
    """`app.alerts`: which stand, and which did; `await app.alerts.list()`."""

    def __init__(self, app: "Penstock", actor: Actor = PROGRAM) -> None:
        self._app = app
        self._actor = actor

    @property
    def clock(self) -> "Clock":
        """That of the store."""
        return self._app.store.clock

    @cached_property
    def critical(self) -> "Critical":
        """What looks for dead letters of critical types, and remembers those it has seen."""
        from penstock.alerts.judge import Critical

        return Critical(self._app)

    @property
    def _records(self) -> "Records":
        return self._app.store.records

    async def list(self) -> list[Alert]:
        """All that ever stirred: firing, then pending, then over; the latest to change first."""
        found = [_opened(record) async for record in every(self._records, KIND)]
        kept = [alert for alert in found if alert.history]
        return sorted(
            kept,
            key=lambda a: (a.state is not AlertState.FIRING, not a.stands, -a.history[-1].at),
        )

    async def get(self, name: str) -> Alert:
        """One alert, or AlertNotFound."""
        record = await self._records.get(KIND, name)
        if record is None:
            raise AlertNotFound(name)
        return _opened(record)

    async def change(self, name: str, rule: str, change: Change) -> Alert:
        """Change an alert as if nobody else did meanwhile, then hand over what it owes.

        What is owed is written down with the decision, and paid afterwards: whoever dies in
        between leaves it to the next look at the alert, and its key keeps it from being told twice.
        """
        while True:
            record = await self._records.get(KIND, name)
            before = Alert(name=name, rule=rule) if record is None else _opened(record)
            after = change(before)
            if after == before or await self._put(after, 0 if record is None else record.revision):
                return await self._settled(after)

    async def acknowledge(self, name: str, note: str | None = None) -> Alert:
        """Say that the actor knows of a firing alert, and what they found."""
        found = await self.get(name)
        kept = redacted(note, NOTE_LIMIT)

        def noted(alert: Alert) -> Alert:
            if alert.state is not AlertState.FIRING:
                raise AlertNotFiring(name, alert.state)
            return acknowledged(alert, self._actor.name, kept, self.clock.now())

        details = {"state": found.state, "severity": found.severity}
        hashed = await self._actor.hashed(note)
        async with self._actor.doing(
            "alert.acknowledge", f"alert:{name}", **details, note_hash=hashed
        ):
            return await self.change(name, found.rule, noted)

    async def _settled(self, alert: Alert) -> Alert:
        if not alert.owed:
            return alert
        await hand_over(self._app, alert)
        owed = alert.owed
        return await self.change(
            alert.name, alert.rule, lambda now: paid(now) if now.owed == owed else now
        )

    async def _put(self, alert: Alert, revision: int) -> bool:
        document = encode(alert).decode()
        return await self._records.put(KIND, alert.name, document, revision=revision) is not None


def _opened(record: "Record") -> Alert:
    try:
        return decode(record.document, type=Alert)
    except MsgspecError:
        # Of a newer version, or edited by hand: it begins afresh rather than stop all others.
        return Alert(name=record.name, rule=record.name.partition(":")[0])
