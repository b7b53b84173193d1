"""`remote.recorder`: a program on another machine sees what the recorder's own would."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from penstock import Penstock, connect
from penstock.apps.recorder.records import LearningFilter, SessionFilter
from penstock.model.not_found import NotFound
from penstock.remote.client import Remote
from penstock.server.app import create_server
from tests.apps.recorder.sessions import RECORDER, learn, record
from tests.support.http_server import serving


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/work.db"


@pytest.fixture
def address(url: str) -> Iterator[str]:
    app = Penstock(url, extensions=["events", RECORDER])
    with serving(create_server(app, trusts_callers=True)) as found:
        yield found.replace("localhost", "127.0.0.1")


@pytest.fixture
async def app(url: str, address: str) -> AsyncIterator[Penstock]:
    async with Penstock(url, extensions=["events", RECORDER]) as made:
        yield made


@pytest.fixture
async def remote(address: str) -> AsyncIterator[Remote]:
    async with connect(address, patience=5) as found:
        yield found


async def test_sessions_and_figures_are_the_same_from_afar(app: Penstock, remote: Remote) -> None:
    session = await record(app)
    here, there = app.recorder, remote.recorder
    where = SessionFilter(platform="claude_code", since=1)
    assert await there.sessions.list(where) == await here.sessions.list(where)
    assert await there.sessions.get(session) == await here.sessions.get(session)
    assert await there.sessions.stats(since=1) == await here.sessions.stats(since=1)
    assert await there.sessions.search("budget") == await here.sessions.search("budget")
    with pytest.raises(NotFound):
        await there.sessions.get("nobody")


async def test_learnings_are_decided_from_afar(app: Penstock, remote: Remote) -> None:
    session = await record(app)
    learning = await learn(app)
    there = remote.recorder.learnings
    found = await there.list(LearningFilter(conversation_id=session))
    assert found == await app.recorder.learnings.list(LearningFilter())
    assert (await there.edit(learning, title="Budgets")).title == "Budgets"
    assert (await there.approve(learning)).status == "approved"
    assert (await there.reject(learning)).status == "rejected"
    assert await there.get(learning) == await app.recorder.learnings.get(learning)
    assert {each.rule_id for each in await remote.recorder.caught()} >= {"aws-access-key"}
