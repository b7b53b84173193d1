"""Sessions: opened, continued in order, closed, listed, and expired by a job."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from penstock import Penstock
from penstock.apps.agents.sessions.records import (
    AgentSessionNotFound,
    NewTurn,
    SessionEnded,
    SessionFilter,
    place,
)
from penstock.config import Settings
from penstock.model.errors import InvalidOption
from penstock.testing import FakeClock, drain, fire_due
from tests.apps.agents.killing import Play, Stage, twice_and_killed
from tests.apps.agents.learning.tasks import EMBEDDER, asked, close_session, days_ago, run
from tests.apps.agents.raw import rows

HELLO = NewTurn(role="user", content="Hello")


async def test_turns_are_numbered_in_the_order_in_which_they_come(agents: Penstock) -> None:
    sessions = agents.agents.sessions
    opened = await sessions.open(tenant="north", user="ada", metadata={"channel": "web"})
    await sessions.add(opened.id, HELLO, NewTurn(role="assistant", content="Hi", skill_id="greet"))
    session = await sessions.add(opened.id, NewTurn(role="tool", content="ok", succeeded=True))
    assert (session.turns, session.status, session.metadata) == (3, "active", {"channel": "web"})
    assert rows(
        agents, "SELECT n, role, content, skill_id, succeeded FROM agents_turns ORDER BY n"
    ) == [
        (1, "user", "Hello", None, None),
        (2, "assistant", "Hi", "greet", None),
        (3, "tool", "ok", None, 1),
    ]
    turns = await sessions.turns(opened.id, after=1)
    assert [(turn.n, turn.succeeded) for turn in turns] == [(2, None), (3, True)]


async def test_those_who_add_at_the_same_time_each_get_a_number(agents: Penstock) -> None:
    sessions = agents.agents.sessions
    opened = await sessions.open()
    said = [NewTurn(role="user", content=str(n)) for n in range(8)]
    await asyncio.gather(*(sessions.add(opened.id, turn) for turn in said))
    turns = await sessions.turns(opened.id)
    assert [turn.n for turn in turns] == list(range(1, 9))
    assert sorted(turn.content for turn in turns) == [str(n) for n in range(8)]


async def test_a_turn_with_a_number_is_added_once(agents: Penstock) -> None:
    sessions = agents.agents.sessions
    opened = await sessions.open()
    for content in ("first", "again"):
        await sessions.add(opened.id, NewTurn(role="user", content=content, n=1))
    assert [turn.content for turn in await sessions.turns(opened.id)] == ["first"]
    with pytest.raises(InvalidOption, match="the number of the next turn, 2"):
        await sessions.add(opened.id, NewTurn(role="user", content="far", n=3))


async def test_a_closed_session_takes_no_more(agents: Penstock) -> None:
    sessions = agents.agents.sessions
    opened = await sessions.open(tenant="north")
    closed = await sessions.close(opened.id)
    assert closed.status == "closed"
    with pytest.raises(SessionEnded, match="is closed and takes no more turns"):
        await sessions.add(opened.id, HELLO)
    assert await sessions.close(opened.id) == closed, "and stays as it is"


async def test_nobody_reaches_a_session_of_another_tenant(agents: Penstock) -> None:
    sessions = agents.agents.sessions
    opened = await sessions.open(tenant="north", session_id="s1")
    for attempt in (
        sessions.get("s1", tenant="south"),
        sessions.turns("s1", tenant="south"),
        sessions.add("s1", HELLO, tenant="south"),
        sessions.close("s1", tenant="south"),
        sessions.restore(["s1"], tenant="south"),
    ):
        with pytest.raises(AgentSessionNotFound):
            await attempt
    with pytest.raises(InvalidOption, match="one that no other tenant has"):
        await sessions.open(tenant="south", session_id="s1")
    assert await sessions.get("s1") == opened


async def test_sessions_are_listed_page_by_page(agents: Penstock, clock: FakeClock) -> None:
    sessions = agents.agents.sessions
    for n in range(5):
        await sessions.open(tenant="north", user="ada" if n % 2 else "bob", session_id=f"s{n}")
        clock.advance(n % 2)
    seen: list[str] = []
    before = None
    while page := await sessions.list(SessionFilter(tenant="north", before=before, limit=2)):
        seen += [session.id for session in page]
        before = place(page[-1])
    assert seen == ["s4", "s3", "s2", "s1", "s0"]
    assert [each.id for each in await sessions.list(SessionFilter(user="ada"))] == ["s3", "s1"]
    assert await sessions.list(SessionFilter(tenant="south")) == []


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"role": "robot", "content": ""}, "one of: user, assistant, tool, system"),
        ({"role": "user", "content": "a\0b"}, "without NUL"),
        ({"role": "user", "content": "a", "n": 0}, "a number from 1"),
    ],
)
def test_a_turn_that_cannot_be_kept_is_refused(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidOption, match=told):
        NewTurn(**wrong)


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"session_id": ""}, "a text, or None for a new one"),
        ({"user": "a\0b"}, "without NUL"),
        ({"metadata": {"a": object()}}, "something JSON can hold"),
    ],
)
async def test_a_session_that_cannot_be_kept_is_refused(
    agents: Penstock, wrong: dict[str, Any], told: str
) -> None:
    with pytest.raises(InvalidOption, match=told):
        await agents.agents.sessions.open(**wrong)
    assert await agents.agents.sessions.list() == []


async def test_a_cleanup_of_a_tenant_leaves_those_of_others(
    agents: Penstock, clock: FakeClock
) -> None:
    sessions = agents.agents.sessions
    for tenant in ("north", "south"):
        await sessions.open(tenant=tenant, session_id=tenant)
    clock.advance(2)
    await agents.agents.enqueue("session-cleanup", {"maxAge": 1_000}, tenant="north")
    await drain(agents)
    assert rows(agents, "SELECT id, status FROM agents_sessions ORDER BY id") == [
        ("north", "expired"),
        ("south", "active"),
    ]


async def test_a_session_expires_when_its_own_time_is_over(
    agents: Penstock, clock: FakeClock
) -> None:
    await agents.agents.sessions.open(session_id="short", expires_in=60)
    await agents.agents.sessions.open(session_id="long", expires_in=600)
    clock.advance(61)
    assert await run(agents, "session-cleanup", {}) == {"expired": 1}
    assert rows(agents, "SELECT id FROM agents_sessions WHERE status = 'expired'") == [("short",)]


async def test_the_default_schedule_expires_what_was_quiet_for_a_day(
    tmp_path: Any, clock: FakeClock
) -> None:
    app = Penstock(f"sqlite:///{tmp_path}/work.db", extensions=["agents"], clock=clock)
    async with app:
        await app.agents.sessions.open(session_id="quiet")
        clock.advance(24 * 3_600 + 1)
        await app.declare()
        clock.advance(15 * 60)
        await fire_due(app)
        await drain(app)
        assert rows(app, "SELECT status FROM agents_sessions") == [("expired",)]


class Cleanup(Play):
    """Sessions that were quiet expire, and are looked through."""

    settings: ClassVar[Mapping[str, Any]] = {"embedder": EMBEDDER}

    async def given(self, app: Penstock) -> None:
        days_ago(app, 2)
        for name in ("quiet", "talking"):
            await app.agents.sessions.open(session_id=name, tenant="north")
            await app.agents.sessions.add(name, *asked("Deploy it", "deploy", succeeded=True))
        days_ago(app, 0)
        await app.agents.sessions.add("talking", HELLO)

    async def enqueue(self, app: Penstock) -> None:
        await app.agents.enqueue("session-cleanup", {"maxAge": 86_400_000})

    async def state(self, app: Penstock) -> Any:
        return [
            rows(app, "SELECT id, status FROM agents_sessions ORDER BY id"),
            rows(app, "SELECT session_id, verdict FROM agents_trajectories"),
            rows(app, "SELECT count(*) FROM jobs WHERE type = 'trajectory-process'"),
        ]


@pytest.mark.thorough
async def test_a_cleanup_expires_quiet_sessions_however_often_it_is_begun(stage: Stage) -> None:
    assert await twice_and_killed(stage, Cleanup()) == [
        [("quiet", "expired"), ("talking", "active")],
        [("quiet", "success")],
        [(1,)],
    ]


async def test_a_session_that_is_closed_is_looked_through(agents: Penstock) -> None:
    await close_session(agents, "s1", *asked("Deploy it", "deploy", succeeded=False))
    await drain(agents)
    found = rows(agents, "SELECT session_id, verdict, tenant_id FROM agents_trajectories")
    assert found == [("s1", "failure", "north")]


async def test_with_jobs_on_redis_sessions_are_in_the_tables_beside_it(
    valkey_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    own = {"folder": str(tmp_path / "agents"), "schedules": False, "embedder": EMBEDDER}
    app = Penstock(
        valkey_url,
        tables=f"sqlite:///{tmp_path}/tables.db",
        extensions=["agents"],
        settings=Settings(extension={"agents": own}),
        clock=clock,
    )
    async with app:
        await close_session(app, "s1", *asked("Deploy it", "deploy", succeeded=True))
        await drain(app)
        (trajectory,) = await app.agents.learning.trajectories()
        assert (trajectory.session_id, trajectory.verdict) == ("s1", "success")
