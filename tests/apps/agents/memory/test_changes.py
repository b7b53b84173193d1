"""What restates a known statement, and what changes it."""

import pytest

from penstock.apps.agents.memory.changes import CHANGED, Weights, change, restates
from penstock.apps.agents.memory.language import content_hash, question, statement


@pytest.mark.parametrize(
    ("known", "new"),
    [
        ("Ada lives in Turin.", "ada lives in TURIN!"),
        ("Ada lives in Turin, near the river.", "Ada lives near the river."),
        ("Ada takes the bus every morning.", "Every morning Ada takes the bus."),
        ("Ada takes the bus every morning.", "Ada takes the bus. Every morning Ada takes the bus."),
    ],
)
def test_what_says_nothing_more_restates(known: str, new: str) -> None:
    assert restates(known, new)


@pytest.mark.parametrize(
    ("known", "new"),
    [
        ("Ada lives in Turin.", "Ada lives in Milan."),
        ("The launch is on 1 June.", "The launch is on 2 June."),
        ("Ada eats fish.", "Ada does not eat fish."),
        ("Ada eats fish.", "Ada doesn't eat fish."),
        ("Ada manages Bert.", "Bert manages Ada."),
        ("Ada lives in Turin.", "Ada lives in Turin with two cats."),
        ("Ada works on Mondays.", "Ada works on Mondays again."),
        ("The rent is 1,450 a month.", "The rent is 1,620 a month."),
        ("The boat left the harbour.", "The boat is in the harbour."),
        ("ada paid bert", "bert paid ada"),
        ("Ada likes tea. Bert hates coffee.", "Ada hates coffee."),
        ("The cat chased the dog.", "The dog chased the cat."),
        ("Ada likes tea and hates coffee.", "Ada likes coffee and hates tea."),
        ("The office is open from 9 to 5.", "The office is open from 5 to 9."),
        ("Ada flew from Rome to Turin.", "Ada flew to Rome."),
        ("Ada is free before lunch.", "Ada is free after lunch."),
        ("I prefer the window seat.", "You prefer the window seat."),
        ("Ada is in Rome.", "Ada was in Rome."),
        ("It was -5 degrees.", "It was 5 degrees."),
        ("Ada writes C++.", "Ada writes C#."),
        ("The limit is x > 5.", "The limit is x < 5."),
        ("The ticket is $5.", "The ticket is €5."),
        ("Is Ada in Turin?", "Ada is in Turin."),
        ("Ada reacted with 🎉", "Ada reacted with 👎"),
    ],
)
def test_what_says_one_thing_more_or_other_does_not(known: str, new: str) -> None:
    assert not restates(known, new)


@pytest.mark.parametrize(("one", "other"), [("🎉", "👎"), ("-5", "5"), ("C++", "C#"), ("!", "?")])
def test_texts_of_signs_are_told_apart(one: str, other: str) -> None:
    assert content_hash(one) != content_hash(other)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Ada lives in Turin.", "Ada lives in Milan now."),
        ("The rent of the shop is 1,450 a month.", "The rent of the shop is 1,620 a month."),
        ("The launch of Heron is on 1 June.", "The launch of Heron was moved to 9 July."),
        ("Bert leads the Heron team.", "Carla leads the Heron team."),
    ],
)
def test_another_value_of_the_same_attribute_is_a_change(old: str, new: str) -> None:
    assert scored(old, new) >= CHANGED


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Ada lives in Turin.", "Ada likes strong coffee."),
        ("Ada had an exam on 20 February.", "Ada got 81 out of 100 in the exam."),
        ("Ada lives in Turin.", "Ada lives in Turin, on the third floor."),
        ("Bert is Ada's brother.", "Carla is Ada's sister."),
    ],
)
def test_another_matter_is_none(old: str, new: str) -> None:
    assert scored(old, new) < CHANGED


def scored(old: str, new: str) -> float:
    """How clearly one changes the other, among a few things that are known."""
    known = (old, new, "Ada has a dog.", "Ada plays chess.", "The weather was fine.", "Ada is 40.")
    return change(statement(old), statement(new), 0.7, Weights(map(statement, known)))


def test_a_hash_is_that_of_the_words() -> None:
    assert content_hash("Ada's café, again!") == content_hash("ada's cafe again")
    assert content_hash("Ada lives here") != content_hash("Ada lived here")


@pytest.mark.parametrize(
    ("text", "past"),
    [
        ("Where does Ada live now?", 0.0),
        ("Where did Ada live before Milan?", 1.0),
        ("Who led the team originally?", 1.0),
        ("Where was the boat?", 0.5),
        ("Who did the work in the end?", 0.0),
    ],
)
def test_the_wording_of_a_question_tells_its_tense(text: str, past: float) -> None:
    assert question(text).past == past


def test_a_question_about_the_past_may_name_months() -> None:
    assert question("Where was the boat in winter?").months == (12, 2)
    assert question("Which was the closing day between April and early August?").months == (4, 8)
    assert question("Where is the boat in winter?").months is None


def test_a_question_tells_what_an_answer_has() -> None:
    assert question("When does she come?").wants == {"date"}
    assert question("Who leads the team?").wants == {"name"}
    assert question("How many ewes are there?").wants == {"number"}


def test_texts_in_which_there_is_nothing_are_taken_apart() -> None:
    for text in ("", "...", "😀", "\0", "日本語の文", "a" * 50_000):
        assert statement(text).is_negative is False
