"""How a task ended: what the user said counts, then what the tools did."""

from typing import Any

import pytest

from penstock.apps.agents.learning.verdicts import judge, said_of, split, task_text
from penstock.apps.agents.sessions.records import Turn

MINUTE = 60_000


def turns(
    *told: tuple[str, str] | tuple[str, str, dict[str, Any]], every: int = 1_000
) -> list[Turn]:
    """Turns from pairs of a role and a text; of a tool, the text is `ok` or `failed`."""
    found = []
    for n, (role, content, *more) in enumerate(told, 1):
        metadata = more[0] if more else {}
        ended = content == "ok" if role == "tool" else None
        skill = str(metadata.pop("skill", "tool")) if role == "tool" else None
        found.append(
            Turn(
                n=n,
                role=role,
                content=content,
                skill_id=skill,
                succeeded=ended,
                at=n * every,
                metadata=metadata,
            )
        )
    return found


ASKED = ("user", "Deploy the shop")
DONE = ("assistant", "It is deployed")


@pytest.mark.parametrize(
    ("told", "verdict"),
    [
        ([ASKED, DONE, ("user", "thanks, that works")], "success"),
        ([ASKED, DONE, ("user", "It is still broken")], "failure"),
        ([ASKED, DONE, ("user", "No, wrong file")], "failure"),
        ([ASKED, DONE, ("user", "great"), DONE, ("user", "hm, now it doesn't work")], "partial"),
        ([ASKED, DONE, ("user", "it doesn't work"), DONE, ("user", "perfect")], "success"),
        ([ASKED, ("tool", "failed"), DONE, ("user", "thank you!")], "success"),
        ([ASKED, ("tool", "ok"), DONE, ("user", "that's wrong")], "failure"),
        ([ASKED, ("tool", "ok"), DONE], "success"),
        ([ASKED, *[("tool", "ok")] * 4, ("tool", "failed")], "partial"),
        ([ASKED, ("tool", "failed"), ("tool", "ok")], "partial"),
        ([ASKED, ("tool", "ok"), *[("tool", "failed")] * 2], "failure"),
        ([ASKED, ("tool", "failed"), DONE], "failure"),
        ([ASKED, DONE], "unknown"),
        ([ASKED], "unknown"),
        ([("user", "Great service! Deploy the shop"), DONE], "unknown"),
    ],
)
def test_a_task_is_judged_by_words_and_tools(told: list[Any], verdict: str) -> None:
    judged = judge(turns(*told))
    assert judged.verdict == verdict, judged.reason


@pytest.mark.parametrize(
    ("rating", "verdict"),
    [
        ("positive", "success"),
        ("negative", "failure"),
        (5, "success"),
        (1, "failure"),
        (True, "success"),
        (False, "failure"),
        (3, "failure"),
        ("so so", "failure"),
    ],
)
def test_a_rating_counts_more_than_words(rating: object, verdict: str) -> None:
    """A rating that says neither leaves it to the words, which are bad here or good."""
    words = "still broken" if verdict == "success" else "thanks"
    if rating in (3, "so so") and not isinstance(rating, bool):
        words = "still broken"
    told = turns(ASKED, ("assistant", "Done", {"feedback": rating}), ("user", words))
    assert judge(told).verdict == verdict


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Thanks a lot", "positive"),
        ("thanks, but it still fails", "negative"),
        ("That is not what I wanted", "negative"),
        ("this isn't right", "negative"),
        ("it’s worse", "negative"),
        ("everything works now", "positive"),
        ("LGTM", "positive"),
        ("Please add a test for the cart", None),
        ("Note that the network is slow", None),
        ("What works best here?", None),
        ("Fix the broken link in the footer", None),
        ("Thanks " + "x" * 400, None),
    ],
)
def test_what_a_user_says_of_it(text: str, said: str | None) -> None:
    assert said_of(turns(("user", text))[0]) == said


def test_figures_tell_of_each_skill() -> None:
    told = turns(ASKED, ("tool", "ok", {"skill": "build"}), ("tool", "failed", {"skill": "push"}))
    metrics = judge(told).metrics
    assert metrics.skills == {"build": [1, 1], "push": [0, 1]}
    assert (metrics.tool_calls, metrics.tool_failures, metrics.duration_ms) == (2, 1, 2_000)


def test_what_is_embedded_is_what_was_asked_and_not_how_it_ended() -> None:
    told = turns(
        ASKED,
        ("tool", "ok", {"skill": "build"}),
        DONE,
        ("user", "Also to staging"),
        ("user", "thanks, that works"),
    )
    assert task_text(told) == "Deploy the shop\nAlso to staging (build)"
    assert task_text(turns(("assistant", "Anybody there?"))) == ""


def test_a_session_is_split_where_a_user_comes_back() -> None:
    early, late = turns(ASKED, DONE, every=MINUTE), turns(ASKED, DONE, every=45 * MINUTE)
    assert len(split(early)) == 1
    assert len(split([*early, *late])) == 2, "an answer belongs to what was asked, however late"
    assert split([]) == []


def test_a_session_is_split_by_the_tasks_that_turns_name() -> None:
    told = turns(
        ("user", "One", {"task": "a"}),
        ("tool", "ok"),
        ("user", "Two", {"task": "b"}),
        ("tool", "failed"),
        ("user", "More", {"task": "b"}),
    )
    assert [[turn.n for turn in task] for task in split(told)] == [[1, 2], [3, 4, 5]]
