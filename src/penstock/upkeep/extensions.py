"""What extensions have running beside the jobs: passes of the leader, followers, and services."""

from penstock.app.extensions import loaded_part
from penstock.app.penstock import Penstock
from penstock.extension import Again, Extension, Follower, Pass
from penstock.model.states import Status
from penstock.service import Service
from penstock.store.contract.changes import CHANGES_AT_ONCE
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


LONGEST_SECONDS = 60.0
"""A follower that cannot be told is tried again after twice as long, up to this."""


class TellFollower(Service):
    """Hands changes of jobs over to a follower while this process leads.

    What is confirmed only after it was told is told again when something comes between the two.
    """

    def __init__(
        self, app: Penstock, leader: Leader, extension: Extension, follower: Follower
    ) -> None:
        super().__init__(follower.every)
        self.name = follower_name(extension, follower)
        self._app = app
        self._changes = app.store.changes
        self._leader = leader
        self._follower = follower
        self._tell = loaded_part(extension, follower.tell)
        self._follows = False

    async def run_once(self) -> None:
        """Tell what waits, if this process leads."""
        every = self._follower.every
        if not self._leader.leads:
            self.interval = min(every, STANDBY_SECONDS)
            return
        self.interval = min(max(2 * self.interval, every), LONGEST_SECONDS)
        if not self._follows:
            await self._changes.follow(self.name, _statuses(self._follower))
            self._follows = True
        more = True
        while more and self._leader.leads:
            more = await self._tell_some()
        self.interval = every

    async def _tell_some(self) -> bool:
        """Tell a batch; whether there may be more."""
        changes = await self._changes.waiting(self.name, CHANGES_AT_ONCE)
        if changes:
            await self._tell(self._app, changes)
            await self._changes.confirm(self.name, [change.position for change in changes])
        return len(changes) == CHANGES_AT_ONCE


def follower_name(extension: Extension, follower: Follower) -> str:
    """What the store knows a follower by."""
    return f"{extension.name}.{follower.name}"


async def follow(app: Penstock) -> None:
    """Have the store record what the followers of all enabled extensions are told of."""
    for extension in app.extensions:
        for each in extension.followers:
            await app.store.changes.follow(follower_name(extension, each), _statuses(each))


def _statuses(follower: Follower) -> list[Status]:
    return [Status(status) for status in follower.statuses]


def extension_passes(app: Penstock, leader: Leader) -> list[Service]:
    """Every pass of every enabled extension, and one for each of its followers."""
    passes: list[Service] = []
    for extension in app.extensions:
        passes += [ExtensionPass(app, leader, extension, each) for each in extension.passes]
        passes += [TellFollower(app, leader, extension, each) for each in extension.followers]
    return passes


def extension_services(app: Penstock) -> list[Service]:
    """What extensions run in every worker and every server, whoever leads."""
    return [
        loaded_part(extension, make)(app)
        for extension in app.extensions
        for make in extension.services
    ]
