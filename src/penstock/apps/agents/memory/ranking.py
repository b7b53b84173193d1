"""In which order memories answer a question.

A memory fits by what it means as a whole, by the words it shares with the question, rare ones more
than common ones, and by words that mean nearly the same; then by whether it has what is asked for,
such as a date after "when". What has changed is one subject with several values: each of them fits
as well as the best, and the question's tense says which one comes first.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import numpy
from msgspec import Struct

from penstock.apps.agents.memory.changes import Weights
from penstock.apps.agents.memory.language import Question, Statement, question, statement
from penstock.model.clock import utc

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vectors = NDArray[numpy.float32]

WORDS = 0.5
"""How much shared words weigh beside what a text means, and the others below likewise."""
NEAR_WORDS = 1.0
WANTED = 0.15
DENIED = 0.15
IMPORTANT = 0.1
FORMER = 0.3
"""By how much a value that does not hold at the time asked about falls behind one that does."""
NEXT = 0.02
RECENT = 0.1
"""By how much the latest of what was found is before the earliest; the other way round if the
question asks for what was."""


class Candidate(Struct, frozen=True, kw_only=True):
    """A memory that may answer."""

    id: str
    content: str
    similarity: float
    importance: float = 0.5
    valid_from: int = 0
    valid_to: int | None = None


Similar = Callable[[Sequence[str]], "Vectors"]
"""Vectors of single words, for an embedder that has them at hand."""


def rank(
    asked: str,
    candidates: Sequence[Candidate],
    now: int,
    *,
    superseded_by: Mapping[str, str],
    made_of: Mapping[str, Collection[str]] = {},
    words: Similar | None = None,
    history: bool | None = None,
    at: int | None = None,
) -> list[tuple[Candidate, float]]:
    """Order memories by how well they answer, the best first.

    `superseded_by` says for the id of a memory which one took its place, and `made_of` of which
    ones it was made: it stands for all of them.
    """
    if not candidates:
        return []
    told = question(asked)
    statements = [statement(each.content) for each in candidates]
    weights = Weights(statements)
    scores = _relevance(told, candidates, statements, weights, words)
    _share(scores, candidates, superseded_by)
    scores += _by_time(told, candidates, now, history, at)
    covered = _stand_for(scores, candidates, made_of)
    order = [n for n in numpy.argsort(-scores, kind="stable") if n not in covered]
    return [(candidates[n], float(scores[n])) for n in order]


def _relevance(
    told: Question,
    candidates: Sequence[Candidate],
    statements: Sequence[Statement],
    weights: Weights,
    words: Similar | None,
) -> "NDArray[numpy.float64]":
    """How well each fits, whatever the time."""
    scores = numpy.array([each.similarity for each in candidates], numpy.float64)
    scores += _lexical(told.statement, statements, weights, words)
    for n, (each, said) in enumerate(zip(candidates, statements, strict=True)):
        scores[n] += WANTED * _has_wanted(told, said)
        scores[n] += DENIED * (told.statement.is_negative and said.is_negative)
        scores[n] += IMPORTANT * (each.importance - 0.5)
    return scores


def _lexical(
    asked: Statement,
    statements: Sequence[Statement],
    weights: Weights,
    words: Similar | None,
) -> "NDArray[numpy.float64]":
    """How much of the question's words each has, by the same and by similar words."""
    wanted = dict(zip(asked.words, asked.forms, strict=True))
    found = numpy.zeros(len(statements))
    total = weights.sum(wanted)
    if not total:
        return found
    near = _nearness(list(wanted.values()), statements, words)
    for n, said in enumerate(statements):
        for place, word in enumerate(wanted):
            weight = weights.of(word) / total
            if word in said.vocabulary:
                found[n] += weight * (WORDS + NEAR_WORDS)
            elif near is not None:
                found[n] += weight * NEAR_WORDS * near[n, place]
    return found


def _nearness(
    forms: Sequence[str], statements: Sequence[Statement], words: Similar | None
) -> "NDArray[numpy.float32] | None":
    """For each text and each word asked for, how near the nearest of the text's words is."""
    if words is None:
        return None
    known = list(dict.fromkeys(form for said in statements for form in said.forms))
    if not known:
        return None
    places = {form: place for place, form in enumerate(known)}
    cosines = words(known) @ words(forms).T
    found = numpy.zeros((len(statements), len(forms)), numpy.float32)
    for n, said in enumerate(statements):
        if said.forms:
            found[n] = cosines[[places[form] for form in said.forms]].max(axis=0)
    return numpy.maximum(found, 0)


def _has_wanted(told: Question, said: Statement) -> float:
    """Whether it has what an answer has in it."""
    if "date" in told.wants and said.kinds & {"day", "month", "year"}:
        return 1.0
    if "number" in told.wants and "number" in said.kinds:
        return 1.0
    if "name" in told.wants and said.names - told.statement.vocabulary:
        return 0.7
    return 0.0


def _share(
    scores: "NDArray[numpy.float64]",
    candidates: Sequence[Candidate],
    superseded_by: Mapping[str, str],
) -> None:
    """Have each value of what has changed fit as well as the best of them."""
    places = {each.id: n for n, each in enumerate(candidates)}
    chains: dict[str, list[int]] = {}
    for n, each in enumerate(candidates):
        last, seen = each.id, {each.id}
        while (newer := superseded_by.get(last)) is not None and newer not in seen:
            seen.add(newer)
            last = newer
        chains.setdefault(last, []).append(n)
        if last in places and places[last] not in chains[last]:
            chains[last].append(places[last])
    for members in chains.values():
        if len(members) > 1:
            scores[members] = max(scores[n] for n in members)


def _stand_for(
    scores: "NDArray[numpy.float64]",
    candidates: Sequence[Candidate],
    made_of: Mapping[str, Collection[str]],
) -> set[int]:
    """Have what was made of several memories fit as well as the best; the places of those."""
    places = {each.id: n for n, each in enumerate(candidates)}
    covered: set[int] = set()
    for whole, parts in made_of.items():
        if whole in places:
            members = [places[part] for part in parts if part in places]
            scores[places[whole]] = max(scores[n] for n in (places[whole], *members))
            covered.update(members)
    return covered


def _by_time(
    told: Question,
    candidates: Sequence[Candidate],
    now: int,
    history: bool | None,
    at: int | None,
) -> "NDArray[numpy.float64]":
    """Put values first that held at the time asked about."""
    span = (at, at) if at is not None else _span(told, now)
    found = numpy.zeros(len(candidates))
    if span is None and told.past in (0.0, 1.0):
        since = numpy.array([each.valid_from for each in candidates], numpy.float64)
        since -= since.min()
        found += RECENT * (1 - 2 * told.past) * since / max(1.0, since.max())
    for n, each in enumerate(candidates):
        ended = each.valid_to is not None
        if span is not None:
            held = each.valid_from <= span[1] and (each.valid_to or now) > span[0]
            found[n] += 0.0 if held and (ended or at is not None) else -FORMER * (ended or 0.1)
        elif history or (history is None and told.past == 1.0):
            found[n] += NEXT if ended else 0.0
        elif told.past:
            found[n] += -NEXT if ended else 0.0
        else:
            found[n] += -FORMER if ended else 0.0
    return found


def _span(told: Question, now: int) -> tuple[int, int] | None:
    """The months that a question names, the last ones before now."""
    if told.months is None:
        return None
    today = utc(now)
    first, last = told.months
    year = today.year if last <= today.month else today.year - 1
    begin = datetime(year - (first > last), first, 1, tzinfo=today.tzinfo)
    end = datetime(year + (last == 12), last % 12 + 1, 1, tzinfo=today.tzinfo)
    return int(begin.timestamp() * 1000), int(end.timestamp() * 1000) - 1
