"""Two statements about the same: whether one restates the other, or says that it has changed.

Both are judged by their words. A gate that lets a restatement through costs a row; one that keeps
out what is new loses it: nothing is a restatement that says one word or sign more, or the same
words in another order. A statement changes
another if it is about the same thing and attribute and gives it another value, or says so.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import log

from penstock.apps.agents.memory.language import Statement, sentences, statement, stem

ABOUT = 0.3
"""Statements that are less similar are about different things."""
CHANGED = 1.5
"""The score from which a statement is taken to change another."""

_ATTRIBUTES = """
live lives lived living flat house home apartment moved moving address city town residence
work works worked working job employed employer company waits shelves career office contract firm
leads lead head heads boss manager manages supervises supervisor charge director captain chief
train metro bike bicycle bus car drives driving travels commutes tram cycles walks
eats eat vegetarian vegan diet meat fish allergic drinks food
costs cost price rent budget pays pay fee salary wage
open closed opens closes hours shut
release launch deadline due planned booked appointment postponed delayed rescheduled scheduled
owns own sold bought owes keeps lends borrowed loan
written ported rewritten language framework database stack
married single engaged divorced girlfriend boyfriend wife husband partner
plays instrument teaches studies practises trains
"""
"""Words that speak of the same attribute, one attribute a line."""


def _groups() -> dict[str, frozenset[int]]:
    found: dict[str, set[int]] = {}
    for number, line in enumerate(_ATTRIBUTES.strip().splitlines()):
        for word in line.split():
            found.setdefault(stem(word), set()).add(number)
    return {word: frozenset(numbers) for word, numbers in found.items()}


_GROUPS = _groups()


def restates(known: str, new: str) -> bool:
    """Whether a text has no sentence that says more than one of a known text does."""
    told = sentences(new)
    there = [statement(sentence) for sentence in sentences(known)]
    return bool(told) and all(
        any(adds_nothing(each, statement(sentence)) for each in there) for sentence in told
    )


def adds_nothing(known: Statement, told: Statement) -> bool:
    """Whether a statement has no word, value, sign or denial that a known one has not.

    Its words have to follow each other as they do there: who does what to whom.
    """
    return (
        bool(told.words)
        and told.values <= known.values
        and told.signs == known.signs
        and told.is_negative == known.is_negative
        and told.tells_change == known.tells_change
        and (_in_order(told.said, known.said) or _begins_elsewhere(told.said, known.said))
    )


def _in_order(some: Iterable[str], all_: Iterable[str]) -> bool:
    """Whether words follow each other in another text as they do here."""
    rest = iter(all_)
    return all(word in rest for word in some)


def _begins_elsewhere(told: Sequence[str], known: Sequence[str]) -> bool:
    """Whether it is the same with the end put first: in the morning she runs."""
    return len(told) == len(known) and any(
        (*known[n:], *known[:n]) == told for n in range(1, len(known))
    )


class Weights:
    """How much each word tells, by how many of somebody's memories have it."""

    def __init__(self, statements: Iterable[Statement]) -> None:
        self._counts: Counter[str] = Counter()
        self._total = 0
        for each in statements:
            self._total += 1
            self._counts.update(each.vocabulary)

    def of(self, word: str) -> float:
        """The weight of a word, great for a rare one."""
        count = self._counts[word]
        return log(1 + (self._total - count + 0.5) / (count + 0.5))

    def sum(self, words: Iterable[str]) -> float:
        """The weight of several."""
        return sum(map(self.of, words))


def change(was: Statement, told: Statement, similarity: float, weights: Weights) -> float:
    """How clearly a later statement changes an earlier one; from `CHANGED` on, it does."""
    shared = was.vocabulary & told.vocabulary
    if similarity < ABOUT or not shared or was.is_event or adds_nothing(was, told):
        return 0.0
    if not _gives_another_value(was, told):
        return 0.0
    here, there, both = (
        weights.sum(was.vocabulary),
        weights.sum(told.vocabulary),
        weights.sum(shared),
    )
    covered = both / (min(here, there) or 1)
    alike = both / (max(here, there) or 1)
    renamed = bool(was.names - told.names) and bool(told.names - was.names)
    score = (
        -6.0
        + 4.5 * similarity
        + 2.8 * covered
        + 4.0 * alike
        + 0.55 * weights.sum(was.names & told.names)
        + 1.3 * (was.words[0] == told.words[0])
        + (0.5 + covered) * told.tells_change
        + (2.5 * covered - 1.0) * renamed
        + 1.6 * bool(_attributes(was) & _attributes(told))
        - 2.2 * (was.is_negative != told.is_negative and not told.tells_change)
        - 2.3 * told.is_event
    )
    return max(0.0, score)


def _gives_another_value(was: Statement, told: Statement) -> bool:
    """Whether it says that something changed, or has a value or name in another's place."""
    if told.tells_change or was.is_negative != told.is_negative:
        return not (was.values and was.values == told.values)
    for kind in was.kinds & told.kinds:
        if kind != "year" and not was.values & told.values:
            return True
    return bool(was.names - told.names) and bool(told.names - was.names)


def _attributes(said: Statement) -> set[int]:
    """The attributes of which it speaks."""
    return {number for word in said.words for number in _GROUPS.get(word, ())}
