"""`remote.events`: a program on another machine appends, reads and settles dead letters."""

import inspect
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from penstock import Penstock, Settings, connect
from penstock.events import archive
from penstock.events.background import WorkFailed
from penstock.events.dead import DeadEvents
from penstock.events.event import InvalidEvent, NewEvent, Session
from penstock.events.log import EventFilter, Events
from penstock.events.pipeline import Pipeline
from penstock.events.pool import catch_up
from penstock.events.remote import RemoteDeadEvents, RemoteEvents, RemotePipeline
from penstock.model.errors import InvalidOption
from penstock.model.not_found import NotFound
from penstock.remote.client import Remote
from penstock.server.app import create_server
from tests.events.counting import Counting, Resetting, counting, numbered
from tests.support.http_server import serving
from tests.support.places import find_place

pytestmark = pytest.mark.thorough("postgres")


@pytest.fixture(params=["sqlite", "postgres"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    told = {"archive": str(tmp_path / "archive")}
    return Settings(url=find_place(request.param, request).url, extension={"events": told})


@pytest.fixture
def counts() -> Counting:
    return Resetting()


@pytest.fixture
def address(settings: Settings, counts: Counting) -> Iterator[str]:
    app = Penstock(settings=settings, extensions=["events"])
    counting(app, counts)
    with serving(create_server(app, trusts_callers=True)) as found:
        yield found.replace("localhost", "127.0.0.1")


@pytest.fixture
async def app(settings: Settings, address: str, counts: Counting) -> AsyncIterator[Penstock]:
    """The application behind the server, as its own processes have it."""
    async with Penstock(settings=settings) as made:
        counting(made, counts)
        yield made


@pytest.fixture
async def remote(address: str) -> AsyncIterator[Remote]:
    async with connect(address, patience=5) as found:
        yield found


@pytest.mark.quick("postgres")
async def test_events_are_appended_once_and_read(app: Penstock, remote: Remote) -> None:
    first = await remote.events.append("tool_use", session_id="s", payload={"n": 1})
    event = NewEvent(event_type="x", event_id="a/b", timestamp=2_000, session_id="t")
    again = [(await remote.events.append(event)).created for _ in range(2)]
    assert (first.created, again) == (True, [True, False])
    assert await remote.events.get("a/b") == await app.events.get("a/b")
    where = EventFilter(session_id="t", since=1_000, until=3_000)
    assert await remote.events.find(where) == await app.events.find(where)
    assert [each.session_id for each in await remote.events.find()] == ["s", "t"]


async def test_what_is_wrong_is_said_here_or_by_the_server(remote: Remote) -> None:
    with pytest.raises(InvalidEvent, match="session_id over"):
        await remote.events.append("x", session_id="s" * 600)
    with pytest.raises(InvalidOption, match="event_limit"):
        await remote.events.append("x", payload={"text": "x" * 1_100_000})
    with pytest.raises(NotFound, match="'none'"):
        await remote.events.get("none")


async def test_dead_letters_are_listed_replayed_and_dropped(
    app: Penstock, remote: Remote, counts: Counting
) -> None:
    await remote.events.append_many([*numbered(1, bad=1), *numbered(1, bad=1, session="t")])
    await catch_up(app)
    counts.broken = False
    second, first = await remote.events.dead.list("count")
    assert await remote.events.dead.list(before=second.id) == [first]
    assert await remote.events.dead.replay(first.id) == 1
    assert (await remote.events.dead.drop(second.id)) == second
    assert await app.events.dead.list() == []


async def test_old_months_are_archived_asked_for_and_erased(app: Penstock, remote: Remote) -> None:
    for month in (1, 2):
        at = f"2026-0{month}-03T00:00:00Z"
        event = NewEvent(event_type="x", session_id="s", event_id=f"e{month}", timestamp=at)
        await remote.events.append(event)
    await remote.events.append("last")
    made = await remote.events.archive(1_770_300_000_000)
    assert made == await archive.files(app)
    assert [(file.file[:7], file.rows) for file in made] == [("2026-01", 1)]
    asked = {"since": 1_760_000_000_000, "limit": 1}
    sql = "SELECT event_id FROM events ORDER BY timestamp"
    assert await remote.events.query(sql, **asked) == await app.events.query(sql, **asked)
    with pytest.raises(InvalidOption, match="one SELECT"):
        await remote.events.query("DELETE FROM events")
    assert await remote.events.archive_jobs(1_770_300_000_000) == []
    erased = await remote.events.erase(Session("", "", "s"))
    assert erased.parts == {"events": 1, "archived events": 1}
    with pytest.raises(NotFound):
        await app.events.get("e2")


async def test_a_consumer_is_paused_resumed_and_rebuilt(
    app: Penstock, remote: Remote, counts: Counting
) -> None:
    await remote.events.append_many([*numbered(1, 2), *numbered(3, session="t")])
    await catch_up(app)
    assert (await remote.events.pipeline.pause("count")).paused
    assert not (await remote.events.pipeline.resume("count")).paused
    counts.seen.clear()
    assert await remote.events.pipeline.rebuild("count", Session("", "", "t")) == 1
    assert counts.seen == {"t": [3]}
    assert await remote.events.pipeline.rebuild("count") == 2
    assert counts.seen == {"s": [1, 2], "t": [3]}
    counts.broken = True
    counts.seen = None  # type: ignore[assignment]
    with pytest.raises(WorkFailed, match="failed at 2 sessions"):
        await remote.events.pipeline.rebuild("count")


def test_what_a_remote_pipeline_has_is_what_a_local_one_has() -> None:
    pairs = ((Pipeline, RemotePipeline), (DeadEvents, RemoteDeadEvents), (Events, RemoteEvents))
    for local, remote in pairs:
        for name in (each for each in vars(remote) if not each.startswith("_")):
            theirs, ours = inspect.getattr_static(local, name), vars(remote)[name]
            if inspect.isfunction(ours):
                known = inspect.signature(theirs).parameters
                assert set(inspect.signature(ours).parameters) <= set(known), name


def test_without_an_event_loop(address: str) -> None:
    remote = connect(address)
    try:
        done = remote.sync.run(remote.events.append("x"))
        assert done.created
    finally:
        remote.sync.close()
