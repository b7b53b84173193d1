"""Sessions become trajectories with verdicts and vectors, once, however often they are read."""

import json
from typing import Any

import numpy
import pytest

from penstock import Penstock
from penstock.apps.agents.learning.records import TrajectoryNotFound
from penstock.apps.agents.sessions.records import NewTurn
from penstock.apps.agents.vectors.store import TRAJECTORIES, vectors_of
from penstock.model.errors import InvalidArguments, InvalidOption
from penstock.testing import drain
from tests.apps.agents.killing import Play, Stage, twice_and_killed
from tests.apps.agents.learning.tasks import BAD, BY_HAND, GOOD, asked, close_session, run
from tests.apps.agents.raw import rows


async def processed(app: Penstock, **data: Any) -> Any:
    """Run the job, and return its result."""
    return await run(app, "trajectory-process", data, tenant="north")


async def test_a_session_becomes_a_trajectory_with_a_vector(agents: Penstock) -> None:
    turns = asked("Deploy the shop", "deploy", succeeded=True, said=GOOD)
    await close_session(agents, "s1", *turns)
    await drain(agents)
    found = rows(
        agents,
        "SELECT session_id, turn_ids, skill_ids, verdict, verdict_reason, user_id, embedding_id, id"
        " FROM agents_trajectories",
    )
    *told, embedding_id, known = found[0]
    reason = "the user's words are positive"
    assert told == ["s1", "[1,2,3,4]", '["deploy"]', "success", reason, "ada"]
    assert embedding_id == known
    held = rows(
        agents,
        "SELECT id, tenant_id, user_id FROM agents_vectors WHERE namespace = ?",
        TRAJECTORIES,
    )
    assert held == [(known, "north", "ada")]
    hits = await vectors_of(agents).search_text(TRAJECTORIES, "deploy the shop", 1, tenant="north")
    assert [hit.id for hit in hits] == [known]
    trajectory = await agents.agents.learning.trajectory(known, tenant="north")
    assert trajectory.metrics.skills == {"deploy": [1, 1]}
    with pytest.raises(TrajectoryNotFound):
        await agents.agents.learning.trajectory(known, tenant="south")


async def test_a_session_that_goes_on_is_judged_again(agents: Penstock) -> None:
    sessions = agents.agents.sessions
    await sessions.open(session_id="s1", tenant="north")
    await sessions.add("s1", *asked("Deploy the shop", "deploy", succeeded=False))
    assert (await processed(agents, sessionIds=["s1"]))["verdicts"] == {"failure": 1}
    await sessions.add("s1", NewTurn(role="user", content=GOOD))
    await sessions.close("s1")
    await drain(agents)
    assert rows(agents, "SELECT verdict FROM agents_trajectories") == [("success",)]
    assert rows(agents, "SELECT turns, learned_turns FROM agents_sessions") == [(4, 4)]


async def test_a_session_that_goes_on_while_it_is_looked_at_is_looked_at_again(
    agents: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    sessions = agents.agents.sessions
    await sessions.open(session_id="s1", tenant="north")
    await sessions.add("s1", *asked("Deploy the shop", "deploy", succeeded=False))
    whole = Penstock.transact
    late = [NewTurn(role="user", content=GOOD)]

    async def interrupted(app: Penstock, work: Any) -> Any:
        if late and work.__qualname__.startswith("write."):
            await sessions.add("s1", late.pop())
        return await whole(app, work)

    monkeypatch.setattr(Penstock, "transact", interrupted)
    assert (await processed(agents, sessionIds=["s1"]))["skipped"] == 1
    assert rows(agents, "SELECT learned_turns FROM agents_sessions") == [(None,)]
    await sessions.close("s1")
    await drain(agents)
    assert rows(agents, "SELECT verdict FROM agents_trajectories") == [("success",)]


async def test_without_names_it_looks_at_what_is_over_and_was_not_looked_at(
    agents: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(agents.extensions._settings, "agents", _by_hand(agents))
    for n in range(5):
        await close_session(agents, f"s{n}", *asked(f"Deploy {n}", "deploy", succeeded=True))
    await close_session(agents, "other", tenant="south")
    await agents.agents.sessions.open(session_id="open", tenant="north")
    first = await processed(agents, batchSize=2)
    assert first == {"processed": 5, "trajectories": 5, "verdicts": {"success": 5}, "skipped": 0}
    assert (await processed(agents))["processed"] == 0
    assert rows(agents, "SELECT count(*) FROM agents_sessions WHERE learned_turns IS NULL") == [
        (2,)
    ]


def _by_hand(app: Penstock) -> Any:
    from msgspec.structs import replace

    from penstock.apps.agents.extension import LearningSettings

    settings = app.extensions.settings("agents")
    return replace(settings, learning=LearningSettings(automatic=False))


async def test_what_cannot_be_looked_at_is_skipped(agents: Penstock) -> None:
    await close_session(agents, "s1", *asked("Deploy", "deploy", succeeded=True), tenant="south")
    result = await processed(agents, sessionIds=["s1", "unknown"])
    assert result == {"processed": 0, "trajectories": 0, "verdicts": {}, "skipped": 2}


async def test_a_wrong_batch_is_refused_before_it_is_enqueued(agents: Penstock) -> None:
    with pytest.raises((InvalidArguments, InvalidOption)):
        await agents.agents.enqueue("trajectory-process", {"sessionIds": "s1"})


async def test_a_pattern_that_was_followed_is_credited_once(agents: Penstock) -> None:
    await agents.transact(lambda tx: tx.agents.run("put_pattern", PATTERN))
    turns = asked("Deploy", "deploy", succeeded=True, patternIds=["p1"])
    await close_session(agents, "s1", *turns)
    await drain(agents)
    for _ in range(2):
        await processed(agents, sessionIds=["s1"])
    assert credited(agents) == [(1,)]
    failing = asked("Deploy", "deploy", succeeded=True, said=BAD, patternIds=["p1"])
    await close_session(agents, "s2", *failing)
    await drain(agents)
    assert credited(agents) == [(1,)], "only for what succeeded"


def credited(app: Penstock) -> list[tuple[Any, ...]]:
    """How often the pattern has helped."""
    return rows(app, "SELECT success_count FROM agents_patterns")


PATTERN = {
    "id": "p1",
    "tenant_id": "north",
    "pattern_type": "workflow",
    "content": "Deploy with deploy",
    "exemplar_trajectory_ids": "[]",
    "confidence": 0.5,
    "is_active": 1,
    "metadata": "{}",
    "now": 0,
}


class Processing(Play):
    """Sessions with tasks that follow a pattern become trajectories."""

    settings = BY_HAND

    async def given(self, app: Penstock) -> None:
        await app.transact(lambda tx: tx.agents.run("put_pattern", PATTERN))
        for n in range(3):
            turns = asked(f"Deploy {n}", "deploy", succeeded=n < 2, patternIds=["p1"])
            await close_session(app, f"s{n}", *turns)

    async def enqueue(self, app: Penstock) -> None:
        data = {"sessionIds": ["s0", "s1", "s2"], "batchSize": 1}
        await app.agents.enqueue("trajectory-process", data, tenant="north")

    async def state(self, app: Penstock) -> Any:
        held = rows(
            app,
            "SELECT id, vector FROM agents_vectors WHERE namespace = 'trajectories' ORDER BY id",
        )
        return [
            rows(app, "SELECT session_id, verdict, metrics FROM agents_trajectories ORDER BY 1"),
            rows(app, "SELECT id FROM agents_trajectories ORDER BY id"),
            [(known, bytes(vector)) for known, vector in held],
            credited(app),
            rows(app, "SELECT id, learned_turns FROM agents_sessions ORDER BY id"),
        ]


@pytest.mark.thorough
async def test_trajectories_are_the_same_however_often_they_are_made(stage: Stage) -> None:
    found, ids, held, credit, learned = await twice_and_killed(stage, Processing())
    assert [(session, verdict) for session, verdict, _ in found] == [
        ("s0", "success"),
        ("s1", "success"),
        ("s2", "failure"),
    ]
    assert json.loads(found[0][2])["credited"] == ["p1"]
    assert [known for known, _ in held] == [known for (known,) in ids]
    assert numpy.linalg.norm(numpy.frombuffer(held[0][1], "<f4")) == pytest.approx(1, abs=1e-5)
    assert credit == [(2,)]
    assert learned == [("s0", 3), ("s1", 3), ("s2", 3)]
