"""Followers: who is told what becomes of jobs, and how much waits to be told."""

from typing import Any

from pydantic import Field

from penstock.model.states import Status
from penstock.operate.documents import document
from penstock.server.api.models import Document, Moment, Name
from penstock.server.api.router import api_router
from penstock.server.guard import MayOperateAll, MayReadAll
from penstock.server.state import Here
from penstock.store.contract import FollowerState

router = api_router("/api/followers", "followers")


class Follower(Document):
    """A follower of jobs, which an extension brought."""

    name: str = Field(examples=["links.clicks"])
    statuses: list[Status] = Field(description="It is told when a job comes to one of these.")
    waiting: int = Field(description="Changes it was not told of yet; not counted for ever.")
    oldest_at: Moment | None = Field(description="Since when the oldest of them waits.")


class Followers(Document):
    """All followers, by name."""

    followers: list[Follower]


class FollowerDropped(Document):
    """The follower that was dropped."""

    name: str


@router.get("", operation_id="list_followers")
async def list_followers(server: Here, _: MayReadAll) -> Followers:
    """All followers by name, and how much waits for each."""
    states = await server.app.followers.states()
    return Followers.model_construct(followers=[_follower(state) for state in states])


@router.delete("/{name:path}", operation_id="drop_follower")
async def drop_follower(server: Here, caller: MayOperateAll, name: Name) -> FollowerDropped:
    """Forget a follower that nobody needs any more, and all that waits for it."""
    await server.operator(caller).followers.drop(name)
    return FollowerDropped(name=name)


def _follower(state: FollowerState) -> Follower:
    fields: dict[str, Any] = document(state) | {"statuses": list(state.statuses)}
    return Follower.model_construct(**fields)
