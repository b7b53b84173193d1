"""`app.agents`: memories, sessions, webhooks and the rest, for programs."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock


class Agents:
    """Each subject of the agent workers under its own name, loaded when it is first used."""

    def __init__(self, app: "Penstock") -> None:
        self._app = app
