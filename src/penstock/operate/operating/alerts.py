"""What an operator says to alerts, on record."""

from typing import TYPE_CHECKING

from penstock.operate.alerts import Alerts

if TYPE_CHECKING:
    from penstock.model.alert import Alert
    from penstock.operate.operating.actor import Acting


class AlertOperator:
    """`operator.alerts`: for operators of the whole installation."""

    def __init__(self, acting: "Acting") -> None:
        self._acting = acting
        self._alerts = Alerts(acting.app)

    async def acknowledge(self, name: str, note: str | None = None) -> "Alert":
        """Say that somebody knows of an alert."""
        found = await self._alerts.get(name)
        noted = None if note is None else await self._acting.journal.keyed_hash(note)
        details = {"state": found.state, "severity": found.severity, "note_hash": noted}
        async with self._acting.doing("alert.acknowledge", f"alert:{name}", **details):
            return await self._alerts.acknowledge(name, self._acting.actor, note)
