"""Patterns: found in groups, checked on others, matched, used, given up and replaced."""

from typing import Any

import numpy
import pytest
from msgspec.structs import replace

from penstock import Penstock
from penstock.apps.agents.learning.patterns import forget, groups, learn
from penstock.apps.agents.learning.records import Metrics, PatternNotFound, Trajectory
from penstock.extension import Erasing
from penstock.model.errors import InvalidOption
from tests.apps.agents.learning.tasks import (
    GOOD,
    PLACES,
    Words,
    asked,
    give_sessions,
    give_tasks,
    run,
)
from tests.apps.agents.raw import rows

DEPLOY = "Deploy the service to search"


def trajectory(n: int, content: str, verdict: str) -> Trajectory:
    """A trajectory as learning sees it."""
    return Trajectory(
        id=f"t{n:03}",
        tenant_id="north",
        workspace_id=None,
        user_id=None,
        session_id=f"s{n}",
        turn_ids=[1],
        skill_ids=["deploy"],
        content=content,
        started_at=n,
        ended_at=n,
        verdict=verdict,
        verdict_reason="",
        metrics=Metrics(),
        embedding_id=f"t{n:03}",
        created_at=0,
    )


def learned_from(training: list[Trajectory], held_out: list[Trajectory]) -> Any:
    embed = Words().embed
    vectors = embed([each.content for each in training])
    others = embed([each.content for each in held_out]) if held_out else numpy.zeros((0, 64))
    return learn(training, vectors, held_out, others)


def test_vectors_are_grouped_around_their_middle() -> None:
    texts = ["deploy the shop", "deploy the shop now", "balance my books", "deploy shop the"]
    vectors = Words().embed(texts)
    found = sorted(sorted(members) for _, members in groups(vectors))
    assert found == [[0, 1, 3], [2]]
    assert all(middle in members for middle, members in groups(vectors))


def test_a_pattern_holds_only_where_others_say_the_same() -> None:
    training = [trajectory(n, "deploy the shop", "success") for n in range(4)]
    agreeing = [trajectory(10, "deploy the shop", "success")]
    contrary = [trajectory(11, "deploy the shop", "failure")]
    assert [each.holds for each in learned_from(training, agreeing)] == [True]
    assert [each.holds for each in learned_from(training, contrary)] == [False]
    assert [each.holds for each in learned_from(training, [])] == [False], "nobody else said so"


def test_a_pattern_that_says_no_more_than_usual_does_not_hold() -> None:
    training = [trajectory(n, "deploy the shop", "success") for n in range(4)]
    mixed = [
        trajectory(9, "deploy the shop", "partial"),
        trajectory(8, "deploy the shop", "success"),
    ]
    assert learned_from(training, mixed)[0].holds
    usual = [*mixed, *(trajectory(20 + n, "write a poem", "success") for n in range(8))]
    assert not learned_from(training, usual)[0].holds


def test_fewer_than_three_are_no_pattern() -> None:
    training = [trajectory(n, "deploy the shop", "success") for n in range(2)]
    assert learned_from(training, []) == []


def test_a_pattern_says_what_to_do_or_what_fails() -> None:
    training = [trajectory(n, "deploy the shop (deploy)", "success") for n in range(3)]
    good = learned_from(training, [])[0]
    assert good.content == (
        "Requests such as “deploy the shop”: use deploy. 3 of 3 such tasks succeeded."
    )
    bad = learned_from([replace(each, verdict="failure") for each in training], [])[0]
    assert bad.pattern_type == "anti_pattern"
    assert bad.content == (
        "Requests such as “deploy the shop” fail with deploy: 0 of 3 such tasks succeeded. "
        "Try another way, or ask first."
    )


@pytest.fixture
async def trained(agents: Penstock) -> Penstock:
    """An application that has learned from some tasks."""
    await give_tasks(agents, 60)
    await run(agents, "pattern-training", {}, tenant="north")
    return agents


@pytest.mark.thorough("postgres")
async def test_patterns_are_matched_used_credited_and_given_up(trained: Penstock) -> None:
    learning = trained.agents.learning
    best = (await learning.match(DEPLOY, skills=["deploy"], tenant="north"))[0]
    assert best.score >= 0.75
    assert "use deploy" in best.pattern.content
    assert await learning.match("What is the weather like?", tenant="north") == []
    assert await learning.match(DEPLOY, skills=["deploy"], tenant="south") == []
    pattern_id = best.pattern.id
    assert uses(trained, pattern_id) == (1, 0)
    await learning.match(DEPLOY, skills=["deploy"], tenant="north", use=False)
    for _ in range(9):
        await learning.match(DEPLOY, skills=["deploy"], tenant="north")
    await learning.succeeded(pattern_id, tenant="north")
    assert uses(trained, pattern_id) == (10, 1)
    await run(trained, "pattern-training", {}, tenant="north")
    assert (await learning.pattern(pattern_id)).is_active, "ten uses are not more than ten"
    await learning.match(DEPLOY, skills=["deploy"], tenant="north")
    result = await run(trained, "pattern-training", {}, tenant="north")
    assert result["patternsDeactivated"] == 1
    given_up = await learning.pattern(pattern_id)
    assert (given_up.is_active, given_up.metadata["inactive"]) == (False, "low_success")
    assert pattern_id not in [
        match.pattern.id for match in await learning.match(DEPLOY, tenant="north")
    ]


def uses(app: Penstock, pattern_id: str) -> tuple[Any, ...]:
    """How often a pattern was used, and how often it helped."""
    asked = "SELECT usage_count, success_count FROM agents_patterns WHERE id = ?"
    return rows(app, asked, pattern_id)[0]


@pytest.mark.thorough("postgres")
async def test_what_is_switched_off_by_hand_stays_off(trained: Penstock) -> None:
    learning = trained.agents.learning
    known = (await learning.patterns(tenant="north", active=True))[0]
    off = await learning.activate(known.id, active=False, tenant="north")
    assert not off.is_active
    await give_more(trained)
    await run(trained, "pattern-training", {}, tenant="north")
    assert not (await learning.pattern(known.id)).is_active
    assert (await learning.activate(known.id, tenant="north")).is_active
    for attempt in (
        learning.pattern(known.id, tenant="south"),
        learning.activate(known.id, tenant="south"),
        learning.succeeded(known.id, tenant="south"),
    ):
        with pytest.raises(PatternNotFound):
            await attempt


async def give_more(app: Penstock) -> None:
    """One more session, so that there is something new."""
    turns = asked(DEPLOY, "deploy", succeeded=True, said=GOOD)
    await give_sessions(app, "north", {"one-more": turns})


@pytest.mark.thorough("postgres")
async def test_a_pattern_that_no_longer_holds_is_replaced_by_its_opposite(
    trained: Penstock, clock: Any
) -> None:
    learning = trained.agents.learning
    old = (await learning.match(DEPLOY, skills=["deploy"], tenant="north"))[0].pattern
    clock.advance(86_400)
    failing = {
        f"later-{n}": asked(f"Deploy the service to {PLACES[n % 6]}", "deploy", succeeded=False)
        for n in range(40)
    }
    await give_sessions(trained, "north", failing)
    await run(trained, "pattern-training", {"batchSize": 40}, tenant="north")
    changed = await learning.pattern(old.id)
    assert not changed.is_active
    assert changed.superseded_by is not None
    new = await learning.pattern(changed.superseded_by)
    assert (new.pattern_type, new.is_active) == ("anti_pattern", True)
    found = await learning.match(DEPLOY, skills=["deploy"], tenant="north")
    assert [match.pattern.id for match in found][:1] == [new.id]
    with pytest.raises(InvalidOption, match="not superseded"):
        await learning.activate(old.id)


@pytest.mark.thorough("postgres")
async def test_patterns_that_show_a_person_are_forgotten_with_them(trained: Penstock) -> None:
    before = {row[0] for row in rows(trained, "SELECT id FROM agents_patterns")}
    theirs = rows(trained, "SELECT id FROM agents_trajectories WHERE user_id = 'user1'")
    shown = {
        known
        for known, *told in rows(
            trained, "SELECT id, exemplar_trajectory_ids, metadata FROM agents_patterns"
        )
        if any(each in text for (each,) in theirs for text in told)
    }
    assert shown
    assert await forget(trained, Erasing(person="user1")) == len(shown)
    assert {row[0] for row in rows(trained, "SELECT id FROM agents_patterns")} == before - shown
    assert await forget(trained, Erasing(tenant="north")) == len(before - shown)
    assert rows(trained, "SELECT id FROM agents_patterns") == []
