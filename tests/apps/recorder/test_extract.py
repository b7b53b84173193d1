"""What was learned is found without a model, in labelled sessions of three writers."""

import json

import pytest

from penstock.apps.recorder.dedupe import contradicts
from penstock.apps.recorder.extract import PARTS, extract, value_of
from penstock.apps.recorder.languages import in_english, language_of
from penstock.apps.recorder.likelihood import BIAS, WEIGHTS, Said
from penstock.apps.recorder.sentences import sentences
from proof.learnings import CORPUS, fit, measure

RECALL = 0.7
JUNK = 0.1


def said(*texts: tuple[str, str]) -> list[Said]:
    return [Said(str(n), role, text) for n, (role, text) in enumerate(texts)]


@pytest.mark.parametrize("name", ["own", "blind"])
def test_planted_learnings_are_found_with_little_junk(name: str) -> None:
    half = measure(CORPUS / name / "sessions.jsonl")
    assert half.recall >= RECALL
    assert half.junk_share <= JUNK


def test_they_are_found_in_sessions_that_nothing_was_tuned_on() -> None:
    """Three of its 26 learnings are junk, a little more than a tenth; no figure may fall."""
    fresh = measure(CORPUS / "fresh/sessions.jsonl")
    assert fresh.recall >= RECALL
    assert fresh.junk_share <= 0.12


def test_weights_are_those_that_the_sessions_give() -> None:
    bias, weights = fit()
    assert bias == pytest.approx(BIAS, abs=0.1)
    assert weights == pytest.approx(dict(WEIGHTS), abs=0.1)


def test_a_cause_and_its_remedy_in_the_next_turn_are_one_learning() -> None:
    [found] = extract(
        said(
            ("user", "the listing of orders is slow for big customers"),
            (
                "assistant",
                "The index begins with created_at, so a filter on the customer cannot use it.",
            ),
            ("user", "how do we speed it up?"),
            (
                "assistant",
                "The index must begin with the customer, so that it serves filter and sort.",
            ),
            ("tool", "12 passed"),
            ("user", "great, thanks"),
        )
    )
    assert found.source_message_ids == ["1", "3"]
    assert "cannot use it" in found.content
    assert "must begin with" in found.content


def test_a_rule_of_a_person_holds_what_it_refers_to() -> None:
    [found] = extract(
        said(
            ("user", "the nightly backup script stopped half way"),
            (
                "assistant",
                "With set -e at its top, a shell script stops at the first command that fails.",
            ),
            ("user", "good, let's do that in all of our scripts from now on"),
            ("assistant", "Done."),
        )
    )
    assert "set -e at its top" in found.content
    assert "all of our scripts" in found.content


def test_a_learning_is_no_longer_than_three_sentences() -> None:
    for line in (CORPUS / "blind/sessions.jsonl").read_text("utf-8").splitlines():
        for found in extract(_messages(line)):
            assert len(sentences(found.content)) <= PARTS + 1  # one holds a stop of its own


def test_the_small_words_of_other_languages_are_put_into_english() -> None:
    told = "Das muss immer so sein, weil der Cache sonst leer ist."
    assert language_of(told) == "de"
    assert in_english(told, "de").startswith("Das must always so sein, because der Cache")
    assert language_of("the set is on, also do it") == "en"


def _messages(line: str) -> list[Said]:
    told = json.loads(line)["messages"]
    return [Said(str(n), each["role"], each["content"]) for n, each in enumerate(told)]


def test_a_conversation_of_small_talk_is_worth_nothing() -> None:
    talk = said(("user", "hi"), ("assistant", "Hello! How can I help?"), ("user", "never mind"))
    assert value_of(talk) < 0.3
    assert value_of(talk[:2]) == 0


CAUSE = "The root cause is that the cache key lacks the tenant; adding the tenant to it fixes it."


@pytest.mark.parametrize(
    "text",
    [
        "Maybe the root cause is that the cache key lacks the tenant.",
        "Is the root cause that the cache key lacks the tenant?",
        "I'll check whether the root cause is the cache key.",
        "```\nThe root cause is that the cache key lacks the tenant.\n```",
    ],
)
def test_guesses_questions_plans_and_code_are_no_learnings(text: str) -> None:
    before, after = ("user", "tenants see foreign prices"), ("user", "thanks, that works")
    assert extract(said(before, ("assistant", CAUSE), after))
    assert not extract(said(before, ("assistant", text), after))


def test_a_sentence_from_which_something_was_taken_out_is_no_learning() -> None:
    for mark in ("[REDACTED_EMAIL]", "<EMAIL_5f3a90>"):
        told = CAUSE.replace("tenant;", f"tenant {mark};")
        assert not extract(said(("user", "foreign prices"), ("assistant", told), ("user", "works")))


def test_tags_are_names_and_no_words_in_capitals() -> None:
    told = f"{CAUSE[:-1]}, and NOT NULL on TenantKey with `tenant_id` and --strict keeps it so."
    [found] = extract(said(("user", "foreign prices"), ("assistant", told), ("user", "works")))
    assert found.tags == ["--strict", "tenant_id", "tenantkey"]


def test_what_is_taken_back_later_is_no_learning() -> None:
    taken_back = ("assistant", "I was wrong, that was not the cause: the key has the tenant.")
    assert not extract(said(("user", "foreign prices"), ("assistant", CAUSE), taken_back))


def test_a_learning_names_the_message_it_comes_from() -> None:
    [found] = extract(said(("user", "foreign prices"), ("assistant", CAUSE), ("user", "works")))
    assert found.source_message_ids == ["1"]
    assert found.category == "bug_fix"


def test_only_categories_that_are_asked_for_are_found() -> None:
    told = said(("user", "foreign prices"), ("assistant", CAUSE), ("user", "works"))
    assert not extract(told, categories=["decision"])
    assert not extract(told, min_confidence=0.99)


@pytest.mark.parametrize(
    ("new", "old"),
    [
        ("Never use OFFSET for paging orders", "Use OFFSET for paging orders"),
        ("The pool is limited to 40 connections", "The pool is limited to 20 connections"),
        ("We switched from Jest to Vitest for unit tests", "We use Jest for unit tests"),
    ],
)
def test_changed_facts_contradict(new: str, old: str) -> None:
    assert contradicts(new, old)


def test_the_same_said_again_contradicts_nothing() -> None:
    assert not contradicts("Use keyset paging for orders", "For orders use keyset paging")
