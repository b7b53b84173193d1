"""Declaring again what a store has forgotten, because somebody emptied it under its workers."""

import structlog

from penstock.client.app import Penstock
from penstock.client.kept import kept
from penstock.model.ids import new_id
from penstock.service import Service

log = structlog.get_logger("penstock.upkeep")

LOOK_SECONDS = 10.0
KIND, NAME = "declarations", "mark"


class Declarations(Service):
    """Looks for a mark that goes only with everything else.

    What an operator took away stays away: a limit or a schedule alone may be missing.
    """

    name = "declarations"

    def __init__(self, app: Penstock) -> None:
        super().__init__(LOOK_SECONDS)
        self._app = app
        self._seen: str | None = None

    async def run_once(self) -> None:
        """Declare everything again if the mark is not the one that this process knows."""
        mark = await kept(self._app.store, KIND, NAME, new_id)
        if self._seen not in (None, mark):
            await self._app.store.migrate()
            if self._app.types:
                await self._app.declare()
            log.warning("store_was_emptied", declared=len(self._app.declarations))
        self._seen = mark
