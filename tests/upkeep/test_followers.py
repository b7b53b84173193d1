"""Followers are told what becomes of jobs, at least once, by whoever leads."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from penstock import Penstock, Worker
from penstock.config import Settings
from penstock.extension import Extension, Follower, JobChange
from penstock.model.errors import InvalidOption
from penstock.model.states import Status
from penstock.testing import tell_followers
from penstock.upkeep import extensions
from penstock.upkeep.extensions import LONGEST_SECONDS, extension_passes, follow
from penstock.upkeep.leader import Leader
from proof.conformance.build import dead_job, enqueue
from tests.support.places import Place


class Diary:
    """Writes down what it is told, or refuses to."""

    def __init__(self) -> None:
        self.told: list[list[JobChange]] = []
        self.broken = False

    async def tell(self, app: Penstock, changes: list[JobChange]) -> None:
        assert isinstance(app, Penstock)
        self.told.append(changes)
        if self.broken:
            raise ValueError("no ink")

    @property
    def statuses(self) -> list[list[str]]:
        return [[change.status.value for change in changes] for changes in self.told]


@pytest.fixture
def diary() -> Diary:
    return Diary()


@pytest.fixture
async def app(place: Place, diary: Diary) -> AsyncIterator[Penstock]:
    followers = (
        Follower(name="ended", tell=diary.tell, every=4),
        Follower(name="queued", tell=diary.tell, statuses=("queued",)),
    )
    made = Penstock(
        settings=Settings(**place.settings),
        extensions=[Extension(name="diary", followers=followers)],
    )
    async with made:
        yield made


@pytest.mark.every_store
async def test_the_leader_tells_what_happened_since_it_was_followed_once(
    app: Penstock, leader: Leader, diary: Diary
) -> None:
    await dead_job(app.store)
    [ended, _] = extension_passes(app, leader)
    assert (ended.name, ended.interval) == ("diary.ended", 4)
    await ended.run_once()
    assert diary.told == []
    ids = [await dead_job(app.store), await dead_job(app.store)]
    await ended.run_once()
    await ended.run_once()
    [changes] = diary.told
    assert [(change.job_id, change.status) for change in changes] == [
        (job_id, Status.DEAD_LETTER) for job_id in ids
    ]
    assert [state.waiting for state in await app.followers.states()] == [0]


async def test_nobody_else_tells(app: Penstock, leader: Leader, follower: Leader) -> None:
    await follow(app)
    await dead_job(app.store)
    [other, _] = extension_passes(app, follower)
    await other.run_once()
    assert other.interval == 1, "so that it notices soon when it comes to lead"
    ended, queued = await app.followers.states()
    assert (ended.name, ended.waiting, queued.waiting) == ("diary.ended", 1, 1)


async def test_a_follower_that_fails_is_told_again_after_a_while(
    app: Penstock, leader: Leader, diary: Diary
) -> None:
    await follow(app)
    await dead_job(app.store)
    [ended, _] = extension_passes(app, leader)
    diary.broken = True
    for seconds in (8, 16, 32, LONGEST_SECONDS, LONGEST_SECONDS):
        with pytest.raises(ValueError, match="no ink"):
            await ended.run_once()
        assert ended.interval == seconds
    diary.broken = False
    await dead_job(app.store)
    await ended.run_once()
    assert diary.statuses == [["dead_letter"]] * 5 + [["dead_letter"] * 2]
    assert ended.interval == 4


async def test_a_follower_that_is_not_wanted_any_more_is_let_go(
    app: Penstock, leader: Leader, diary: Diary
) -> None:
    await follow(app)
    await dead_job(app.store)
    unwanted = Follower(name="ended", tell=diary.tell, every=4, wanted=lambda _: False)
    ended = extensions.TellFollower(
        app, leader, Extension(name="diary", followers=(unwanted,)), unwanted
    )
    await ended.run_once()
    assert (diary.told, ended.interval) == ([], LONGEST_SECONDS)
    assert [state.name for state in await app.followers.states()] == ["diary.queued"]


async def test_a_follower_that_fails_holds_up_no_other(
    app: Penstock, leader: Leader, diary: Diary
) -> None:
    await follow(app)
    await dead_job(app.store)
    [ended, queued] = extension_passes(app, leader)
    diary.broken = True
    with pytest.raises(ValueError, match="no ink"):
        await ended.run_once()
    diary.broken = False
    await queued.run_once()
    assert diary.statuses[-1] == ["queued"]
    waiting = {state.name: state.waiting for state in await app.followers.states()}
    assert waiting == {"diary.ended": 1, "diary.queued": 0}


@pytest.mark.every_store
async def test_what_was_told_and_not_confirmed_is_told_again(
    app: Penstock, leader: Leader, diary: Diary, monkeypatch: pytest.MonkeyPatch
) -> None:
    await follow(app)
    job_id = await dead_job(app.store)
    [ended, _] = extension_passes(app, leader)

    async def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(type(app.store.changes), "confirm", killed)
        with pytest.raises(KeyboardInterrupt):
            await ended.run_once()
    [again, _] = extension_passes(app, leader)
    await again.run_once()
    assert [[change.job_id for change in changes] for changes in diary.told] == [[job_id]] * 2


async def test_many_changes_are_told_in_batches(
    app: Penstock, leader: Leader, diary: Diary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extensions, "CHANGES_AT_ONCE", 2)
    await follow(app)
    ids = [await enqueue(app.store) for _ in range(5)]
    [_, queued] = extension_passes(app, leader)
    await queued.run_once()
    assert [len(changes) for changes in diary.told] == [2, 2, 1]
    assert [change.job_id for changes in diary.told for change in changes] == ids


async def test_an_election_that_is_lost_ends_the_telling_after_the_batch(
    app: Penstock, leader: Leader, diary: Diary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(extensions, "CHANGES_AT_ONCE", 1)
    await follow(app)
    for _ in range(2):
        await enqueue(app.store)
    [_, queued] = extension_passes(app, leader)
    real = app.store.changes.confirm

    async def confirm_and_resign(*given: Any) -> None:
        await real(*given)
        await leader.stop()

    monkeypatch.setattr(app.store.changes, "confirm", confirm_and_resign)
    await queued.run_once()
    assert len(diary.told) == 1


@pytest.mark.every_store
async def test_a_worker_tells_of_the_jobs_that_it_does(place: Place) -> None:
    heard: asyncio.Queue[JobChange] = asyncio.Queue()

    async def hear(_: Penstock, changes: list[JobChange]) -> None:
        for change in changes:
            heard.put_nowait(change)

    follower = Follower(name="each", tell=hear, every=0.01, statuses=tuple(Status))
    extension = Extension(name="ear", followers=(follower,))
    app = Penstock(settings=Settings(**place.settings), extensions=[extension])

    @app.job
    async def greet() -> None: ...

    async with app:
        await follow(app)
        handle = await greet.enqueue()
        worker = Worker(app)
        task = asyncio.create_task(worker.run())
        async with asyncio.timeout(20):
            changes = [await heard.get() for _ in range(3)]
        worker.stop()
        await task
    assert {change.job_id for change in changes} == {handle.id}
    assert [change.status for change in changes] == ["queued", "in_progress", "completed"]


@pytest.mark.every_store
async def test_a_test_tells_followers_by_itself(app: Penstock, diary: Diary) -> None:
    assert await tell_followers(app) == 0
    await dead_job(app.store)
    assert await tell_followers(app) == 2
    assert sorted(diary.statuses) == [["dead_letter"], ["queued"]]
    assert await tell_followers(app) == 0


async def test_a_follower_asks_for_statuses_that_there_are() -> None:
    for statuses in ((), ("done",)):
        with pytest.raises(InvalidOption, match="'statuses' is"):
            Follower(name="x", tell=print, statuses=statuses)
    with pytest.raises(InvalidOption, match="'name' is 'No words'"):
        Follower(name="No words", tell=print)


def test_two_followers_of_an_extension_have_two_names() -> None:
    ended = Follower(name="ended", tell=print)
    with pytest.raises(InvalidOption, match="no other follower"):
        Extension(name="garden", followers=(ended, Follower(name="ended", tell=repr)))
