"""What extensions have running beside the jobs: passes of the leader, followers, and services."""

from collections.abc import Awaitable, Callable

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
    """Hands changes of jobs over to a follower while this process leads."""

    def __init__(
        self, app: Penstock, leader: Leader, extension: Extension, follower: Follower
    ) -> None:
        super().__init__(follower.every)
        self.name = follower_name(extension, follower)
        self._app = app
        self._leader = leader
        self._follower = follower
        self._extension = extension
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
            if not await _follow(self._app, self._extension, self._follower):
                self.interval = LONGEST_SECONDS
                return
            self._follows = True
        while self._leader.leads:
            if await _tell_some(self._app, self.name, self._tell) < CHANGES_AT_ONCE:
                break
        self.interval = every


async def _follow(app: Penstock, extension: Extension, follower: Follower) -> bool:
    """Have changes recorded for a follower, or no longer if it is not wanted; whether it is."""
    name = follower_name(extension, follower)
    if follower.wanted is not None and not loaded_part(extension, follower.wanted)(app):
        await app.store.changes.unfollow(name)
        return False
    await app.store.changes.follow(name, [Status(status) for status in follower.statuses])
    return True


async def _tell_some(app: Penstock, name: str, tell: Callable[..., Awaitable[None]]) -> int:
    """Tell a batch, and then confirm it: a kill in between has it told again; how many."""
    changes = await app.store.changes.waiting(name, CHANGES_AT_ONCE)
    if changes:
        await tell(app, changes)
        await app.store.changes.confirm(name, [change.position for change in changes])
    return len(changes)


def follower_name(extension: Extension, follower: Follower) -> str:
    """What the store knows a follower by."""
    return f"{extension.name}.{follower.name}"


async def follow(app: Penstock) -> None:
    """Have the store record what the followers of all enabled extensions are told of."""
    for extension in app.extensions:
        for each in extension.followers:
            await _follow(app, extension, each)


async def tell_followers(app: Penstock) -> int:
    """Tell all followers what waits for them, whoever leads; how many changes that were.

    They follow from the first call on, as they do from the start of the first worker on.
    """
    await follow(app)
    changes = 0
    for extension in app.extensions:
        for each in extension.followers:
            name, tell = follower_name(extension, each), loaded_part(extension, each.tell)
            while batch := await _tell_some(app, name, tell):
                changes += batch
    return changes


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
