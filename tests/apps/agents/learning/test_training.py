"""Training: by what is held out, once for the same trajectories, tenant by tenant."""

import json
from typing import Any

import numpy
import pytest

from penstock import Penstock
from penstock.apps.agents.learning.classifier import from_bytes
from penstock.apps.agents.learning.training import is_held_out
from penstock.testing import FakeClock
from tests.apps.agents.killing import Play, Stage, twice_and_killed
from tests.apps.agents.learning.tasks import BY_HAND, asked, give_sessions, give_tasks, run
from tests.apps.agents.raw import rows


@pytest.mark.thorough("postgres")
async def test_what_is_learned_holds_for_what_was_held_out(agents: Penstock) -> None:
    await give_tasks(agents, 60)
    result = await run(agents, "pattern-training", {"batchSize": 1000, "epochs": 5}, tenant="north")
    held_out = [
        row for row in rows(agents, "SELECT id FROM agents_trajectories") if is_held_out(row[0])
    ]
    told = result["results"][0]
    assert (result["trained"], told["heldOut"]) == (True, len(held_out))
    assert told["accuracy"] > told["previousAccuracy"]
    assert result["classifiersActivated"] == 1
    kinds = rows(agents, "SELECT DISTINCT pattern_type FROM agents_patterns WHERE is_active = 1")
    assert sorted(kinds) == [("anti_pattern",), ("workflow",)]
    named = {
        known
        for row in rows(agents, "SELECT exemplar_trajectory_ids FROM agents_patterns")
        for known in json.loads(row[0])
    }
    assert named
    assert not any(is_held_out(known) for known in named), "they had no part in it"
    learning = agents.agents.learning
    good = await learning.predict("Deploy the service to logins", skills=["deploy"], tenant="north")
    bad = await learning.predict("Migrate the tables of logins", skills=["migrate"], tenant="north")
    assert good is not None
    assert bad is not None
    assert (good.verdict, bad.verdict) == ("success", "failure")
    assert sum(bad.probabilities.values()) == pytest.approx(1, abs=1e-5)
    assert await learning.predict("Deploy it", tenant="south") is None


async def test_trained_again_on_the_same_it_says_so(agents: Penstock) -> None:
    await give_tasks(agents, 40)
    first = await run(agents, "pattern-training", {}, tenant="north")
    before = learned(agents)
    again = await run(agents, "pattern-training", {}, tenant="north")
    assert (first["trained"], again["trained"], again["reason"]) == (True, False, "nothing_new")
    assert learned(agents) == before


async def test_from_too_little_nothing_is_learned(agents: Penstock) -> None:
    assert await run(agents, "pattern-training", {}) == {
        "trained": False,
        "reason": "insufficient_trajectories",
    }
    await give_tasks(agents, 4)
    result = await run(agents, "pattern-training", {}, tenant="north")
    assert (result["trained"], result["reason"]) == (False, "insufficient_trajectories")
    assert rows(agents, "SELECT count(*) FROM agents_classifiers") == [(0,)]


@pytest.mark.thorough
async def test_without_a_tenant_each_one_learns_for_itself(agents: Penstock) -> None:
    await give_tasks(agents, 40, "north")
    await give_tasks(agents, 40, "south")
    result = await run(agents, "pattern-training", {})
    assert [told["tenantId"] for told in result["results"]] == ["north", "south"]
    tenants = rows(
        agents, "SELECT tenant_id FROM agents_classifiers WHERE is_active = 1 ORDER BY 1"
    )
    assert tenants == [("north",), ("south",)]
    for tenant, exemplars in rows(
        agents, "SELECT tenant_id, exemplar_trajectory_ids FROM agents_patterns"
    ):
        for known in json.loads(exemplars):
            owner = rows(agents, "SELECT tenant_id FROM agents_trajectories WHERE id = ?", known)
            assert owner == [(tenant,)]


@pytest.mark.thorough
async def test_a_classifier_that_is_no_better_does_not_replace_another(
    agents: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await give_tasks(agents, 60)
    await run(agents, "pattern-training", {}, tenant="north")
    active = "SELECT id FROM agents_classifiers WHERE is_active = 1"
    before = rows(agents, active)

    def unlearn(*_: Any, begin: Any, **__: Any) -> Any:
        return -begin

    monkeypatch.setattr("penstock.apps.agents.learning.classifier.train", unlearn)
    result = await run(agents, "pattern-training", {"epochs": 1}, tenant="north")
    told = result["results"][0]
    assert told["accuracy"] < told["previousAccuracy"]
    assert "activated" not in told
    assert rows(agents, active) == before
    assert rows(agents, "SELECT count(*) FROM agents_classifiers") == [(2,)], "but it is kept"


@pytest.mark.thorough
async def test_what_was_consolidated_is_held_to(agents: Penstock, clock: FakeClock) -> None:
    await give_tasks(agents, 60)
    await run(agents, "pattern-training", {}, tenant="north")
    result = await run(agents, "ewc-consolidation", {}, tenant="north")
    assert (result["consolidated"], result["parameters"]) == (True, 257 * 3)
    clock.advance(60)
    failing = {
        f"later-{n}": asked(f"Deploy the service to place {n}", "deploy", succeeded=False)
        for n in range(30)
    }
    await give_sessions(agents, "north", failing)
    for penalty in (0, 1e6):
        data = {"batchSize": 30, "penalty": penalty}
        await run(agents, "pattern-training", data, tenant="north")
    held, free = await moves(agents)
    assert held < free / 100, "the penalty holds what matters"


async def moves(app: Penstock) -> list[float]:
    """How far later classifiers are from the consolidated one, by what matters; the least first."""
    known = "SELECT parameters, fisher FROM agents_classifiers WHERE fisher IS"
    ((before, fisher),) = rows(app, f"{known} NOT NULL")
    return sorted(
        float((as_array(fisher) * (as_array(after) - as_array(before)) ** 2).sum())
        for after, _ in rows(app, f"{known} NULL")
    )


def as_array(held: bytes) -> Any:
    """Parameters as numbers."""
    return from_bytes(bytes(held))


async def test_without_a_classifier_there_is_nothing_to_consolidate(agents: Penstock) -> None:
    expected = {"consolidated": False, "reason": "no_classifier"}
    assert await run(agents, "ewc-consolidation", {}) == expected
    result = await run(agents, "ewc-consolidation", {}, tenant="north")
    assert (result["consolidated"], result["reason"]) == (False, "no_classifier")


class Training(Play):
    """Trajectories of two tenants are learned from."""

    settings = BY_HAND

    async def given(self, app: Penstock) -> None:
        await give_tasks(app, 24, "north")
        await give_tasks(app, 24, "south")

    async def enqueue(self, app: Penstock) -> None:
        await app.agents.enqueue("pattern-training", {"batchSize": 1000, "epochs": 5})

    async def state(self, app: Penstock) -> Any:
        return learned(app)


def learned(app: Penstock) -> list[Any]:
    """All that was learned."""
    classifiers = rows(
        app,
        "SELECT id, tenant_id, is_active, parameters, fisher FROM agents_classifiers ORDER BY id",
    )
    return [
        rows(
            app,
            "SELECT id, tenant_id, pattern_type, content, confidence, is_active,"
            " exemplar_trajectory_ids, metadata, updated_at FROM agents_patterns ORDER BY id",
        ),
        [
            (*told, bytes(parameters), None if fisher is None else bytes(fisher))
            for *told, parameters, fisher in classifiers
        ],
        rows(app, "SELECT id FROM agents_vectors WHERE namespace = 'patterns' ORDER BY id"),
    ]


@pytest.mark.thorough
async def test_a_training_learns_the_same_however_often_it_is_begun(stage: Stage) -> None:
    patterns, classifiers, held = await twice_and_killed(stage, Training())
    assert {pattern[1] for pattern in patterns} == {"north", "south"}
    assert any(pattern[5] for pattern in patterns)
    assert sorted(tenant for _, tenant, active, *_ in classifiers if active) == ["north", "south"]
    assert [known for (known,) in held] == [pattern[0] for pattern in patterns]


class Consolidating(Play):
    """A classifier that was trained is consolidated."""

    settings = BY_HAND

    async def given(self, app: Penstock) -> None:
        await give_tasks(app, 24)
        await run(app, "pattern-training", {}, tenant="north")

    async def enqueue(self, app: Penstock) -> None:
        await app.agents.enqueue("ewc-consolidation", {}, tenant="north")

    async def state(self, app: Penstock) -> Any:
        return learned(app)[1]


@pytest.mark.thorough
async def test_a_consolidation_is_the_same_however_often_it_is_begun(stage: Stage) -> None:
    (classifier,) = await twice_and_killed(stage, Consolidating())
    *_, parameters, fisher = classifier
    assert len(fisher) == len(parameters) == 65 * 3 * 4
    assert numpy.frombuffer(fisher, "<f4").min() >= 0
    assert numpy.frombuffer(fisher, "<f4").max() > 0
