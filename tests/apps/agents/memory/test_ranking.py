"""In which order memories answer."""

from typing import Any

from penstock.apps.agents.memory.ranking import Candidate, rank

DAY = 86_400_000
NOW = 1_788_000_000_000  # in August 2026


def told(content: str, **more: Any) -> Candidate:
    return Candidate(**{"id": content, "content": content, "similarity": 0.5, **more})


def order(asked: str, *candidates: Candidate, **how: Any) -> list[str]:
    options: dict[str, Any] = {"superseded_by": {}, **how}
    return [each.id for each, _ in rank(asked, candidates, NOW, **options)]


TURIN = told("Ada lives in Turin.", id="turin", valid_from=NOW - 200 * DAY, valid_to=NOW - 90 * DAY)
MILAN = told("Ada has moved to Milan.", id="milan", valid_from=NOW - 90 * DAY, similarity=0.2)
CAT = told("Ada has a cat in her flat.", id="cat", valid_from=NOW - 100 * DAY)
CHANGED = {"turin": "milan"}


def test_nothing_is_ordered_into_nothing() -> None:
    assert order("anything") == []


def test_rare_words_count_more_than_common_ones() -> None:
    bert, others = told("Ada knows Bert."), [told(f"Ada knows {n} people.") for n in range(3, 9)]
    assert order("Does Ada know Bert?", *others, bert)[0] == bert.id


def test_what_holds_comes_before_what_it_superseded_and_is_found_by_its_words() -> None:
    found = order("Where does Ada live?", CAT, TURIN, MILAN, superseded_by=CHANGED)
    assert found.index("milan") < found.index("turin")
    assert found[0] == "milan"


def test_a_question_for_what_was_has_it_first() -> None:
    found = order("Where did Ada live before?", CAT, MILAN, TURIN, superseded_by=CHANGED)
    assert found[0] == "turin"


def test_a_question_that_names_months_has_first_what_held_then() -> None:
    held = {"superseded_by": CHANGED}
    assert order("Where was Ada living in spring?", MILAN, TURIN, **held)[0] == "turin"
    assert order("Where was Ada living in July?", TURIN, MILAN, **held)[0] == "milan"


def test_with_a_time_what_held_then_is_first() -> None:
    then = NOW - 150 * DAY
    assert order("Where does Ada live?", MILAN, TURIN, superseded_by=CHANGED, at=then)[0] == "turin"


def test_when_is_answered_by_what_has_a_date() -> None:
    plain, dated = told("The vet sees the cat."), told("The vet sees the cat on 3 June.")
    assert order("When does the vet see the cat?", plain, dated)[0] == dated.id


def test_a_denial_is_answered_by_a_denial() -> None:
    fish, beans = told("Ada eats fish."), told("Ada does not eat beans.")
    assert order("What does Ada not eat?", fish, beans)[0] == beans.id


def test_what_was_made_of_memories_stands_for_them() -> None:
    whole = told("Ada likes coffee and tea.", id="whole", similarity=0.1)
    found = order(
        "What does Ada drink?",
        told("Ada likes coffee.", id="a", similarity=0.9),
        told("Ada likes tea.", id="b", similarity=0.8),
        CAT,
        whole,
        made_of={"whole": {"a", "b"}},
    )
    assert found == ["whole", "cat"]


def test_of_two_that_fit_alike_the_more_important_is_first() -> None:
    low = Candidate(id="low", content="Ada plays chess.", similarity=0.5, importance=0.1)
    high = Candidate(id="high", content="Ada plays chess.", similarity=0.5, importance=0.9)
    assert order("What does Ada play?", low, high) == ["high", "low"]
