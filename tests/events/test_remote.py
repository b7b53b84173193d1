"""`remote.events`: a program on another machine appends, reads and settles dead letters."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from penstock import Penstock, connect
from penstock.events.event import InvalidEvent, NewEvent
from penstock.events.log import EventFilter
from penstock.events.pool import catch_up
from penstock.model.errors import InvalidOption
from penstock.model.not_found import NotFound
from penstock.remote.client import Remote
from penstock.server.app import create_server
from tests.events.counting import Counting, Resetting, counting, numbered
from tests.support.http_server import serving


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/work.db"


@pytest.fixture
def counts() -> Counting:
    return Resetting()


@pytest.fixture
def address(url: str, counts: Counting) -> Iterator[str]:
    app = Penstock(url, extensions=["events"])
    counting(app, counts)
    with serving(create_server(app, trusts_callers=True)) as found:
        yield found.replace("localhost", "127.0.0.1")


@pytest.fixture
async def app(url: str, address: str, counts: Counting) -> AsyncIterator[Penstock]:
    """The application behind the server, as its own processes have it."""
    async with Penstock(url) as made:
        counting(made, counts)
        yield made


@pytest.fixture
async def remote(address: str) -> AsyncIterator[Remote]:
    async with connect(address, patience=5) as found:
        yield found


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


def test_without_an_event_loop(address: str) -> None:
    remote = connect(address)
    try:
        done = remote.sync.run(remote.events.append("x"))
        assert done.created
    finally:
        remote.sync.close()
