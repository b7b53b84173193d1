"""Followers of jobs: what waits for them, and letting one go that nobody reads for any more."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.model.not_found import FollowerNotFound
from penstock.model.options import check_text
from penstock.operate.actor import PROGRAM, Actor
from penstock.store.contract.changes import MANY_CHANGES
from penstock.store.contract.metrics import DAY_MS

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.store.contract import FollowerState

OLD_CHANGE_MS = DAY_MS


class Followers:
    """`app.followers`: who is told what becomes of jobs."""

    def __init__(self, app: "Penstock", actor: Actor = PROGRAM) -> None:
        self._app = app
        self._actor = actor

    async def states(self) -> "list[FollowerState]":
        """All followers by name, and how many changes wait for each since when."""
        return await self._app.store.changes.followers()

    async def drop(self, name: str) -> None:
        """Forget a follower and all that waits for it; FollowerNotFound if there is none.

        One whose extension is still in use follows again when the next worker starts.
        """
        check_text("name", name)
        async with self._actor.doing("follower.drop", f"follower:{name}"):
            if not await self._app.store.changes.unfollow(name):
                raise FollowerNotFound(name)


def behind(states: "Iterable[FollowerState]", now: int) -> "list[FollowerState]":
    """Those for whom very many changes wait, or one for over a day: perhaps nobody reads them."""
    oldest = now - OLD_CHANGE_MS
    return [
        state
        for state in states
        if state.waiting > MANY_CHANGES
        or (state.oldest_at is not None and state.oldest_at < oldest)
    ]
