"""What extensions have running beside the jobs: passes of the leader, and services."""

from penstock.app.extensions import loaded_part
from penstock.app.penstock import Penstock
from penstock.extension import Again, Extension, Pass
from penstock.service import Service
from penstock.upkeep.leader import Leader

STANDBY_SECONDS = 1.0
"""So often a pass that is seldom looks whether this process has come to lead."""


class ExtensionPass(Service):
    """Runs a pass of an extension while this process leads."""

    def __init__(self, app: Penstock, leader: Leader, extension: Extension, what: Pass) -> None:
        super().__init__(what.every)
        self.name = f"{extension.name}.{what.name}"
        self._app = app
        self._leader = leader
        self._every = what.every
        self._run_pass = loaded_part(extension, what.run)

    async def run_once(self) -> None:
        """Run it once, if this process leads."""
        if not self._leader.leads:
            self.interval = min(self._every, STANDBY_SECONDS)
            return
        self.interval = self._every
        answer = await self._run_pass(self._app)
        if isinstance(answer, Again):
            self.interval = answer.seconds


def extension_passes(app: Penstock, leader: Leader) -> list[Service]:
    """Every pass of every enabled extension."""
    return [
        ExtensionPass(app, leader, extension, each)
        for extension in app.extensions
        for each in extension.passes
    ]


def extension_services(app: Penstock) -> list[Service]:
    """What extensions run in every worker and every server, whoever leads."""
    return [
        loaded_part(extension, make)(app)
        for extension in app.extensions
        for make in extension.services
    ]
