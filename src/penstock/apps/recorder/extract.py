"""What was learned in a conversation, found without a model: the sentences that say so.

Each sentence has features: how it is put, what stands around it, what becomes of it. Their weights
were fitted to the labelled sessions of `proof/corpus/own` (`python -m proof.learnings --fit`). Of
one turn, from a prompt to the next, the likeliest sentence is kept, with the one that explains it.
How well it can be acted on, how general, how clear and how well supported it is makes its
confidence; guesses, plans, questions and what was taken back are left out.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from penstock.apps.recorder import sentences as put
from penstock.apps.recorder.captured import PERSON, TOOL
from penstock.apps.recorder.cues import CUES, KINDS, TRAITS
from penstock.apps.recorder.learnings import Found
from penstock.apps.recorder.sentences import about, compiled, sentences

EXTRACTOR = 1
"""The version of what stands here; a conversation is looked through again by a newer one."""
OFFLINE = "offline"

VALUE_GATE = 0.3
FEWEST = 3
THRESHOLD = 0.6
STRICT = 0.65
STRICTER = ("best_practice", "anti_pattern")
MOST = 8
"""No more learnings than these come of one conversation."""

SHORTEST = 5
LONGEST = 60
"""Words of a sentence that is looked at."""
LIKELY = 0.5
"""From here on a sentence is taken for something that was learned."""
EXPLAINS = 0.3
"""From here on it may explain a likelier one of the same turn."""
OVERLAP = 0.55
ELSEWHERE = 0.75
"""Two candidates that share more of their words are one; of different categories, far more."""

BIAS = -5.02
WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "length": 0.26,
        "short": -0.48,
        "long": 0.93,
        "longer": 1.65,
        "person": 0.44,
        "cue": 0.96,
        "kinds": 0.59,
        "technical": -0.15,
        "unfolds": 1.49,
        "acts": 0.37,
        "general": 0.09,
        "first_person": -0.3,
        "acted": -1.27,
        "imperative": 0.97,
        "after_tool": -0.43,
        "succeeds": 0.01,
        "praised": -0.07,
        "opening": -0.84,
        "place": 0.96,
        "taken_up": 0.48,
        "asked_for": -0.78,
        "alone": 0.69,
        "nth": -0.15,
        "negates": 0.25,
        "reasons": 0.39,
        "times": 0.13,
        "demands": 1.36,
        "behaves": 0.72,
        "tells_past": -0.45,
        "gains": 1.9,
    }
)
"""What each feature adds to the logarithm of the odds that a sentence was learned."""


class Said(NamedTuple):
    """A message, as far as learnings are looked for in it."""

    id: str
    role: str
    content: str


class Candidate(NamedTuple):
    """A sentence that may say what was learned, in its message and turn."""

    n: int
    at: int
    turn: int
    text: str
    category: str
    likelihood: float
    message: Said
    why: str = ""


def value_of(messages: Sequence[Said]) -> float:
    """How much there may be to learn from a conversation, from 0 to 1."""
    if len(messages) < FEWEST:
        return 0.0
    texts = [each.content for each in messages if each.role != TOOL]
    tools = [each.content for each in messages if each.role == TOOL]
    went_wrong = any(put.BAD.search(text) for text in (*tools, *texts))
    went_right = any(put.GOOD.search(text) for text in (*tools[-3:], *texts[-4:]))
    telling = sum(each.likelihood for each in _candidates(messages))
    said = sum(len(text.split()) for text in texts)
    return round(
        min(0.6, 0.5 * telling)
        + 0.1 * went_wrong
        + 0.1 * (went_wrong and went_right)
        + 0.05 * bool(tools)
        + min(0.15, said / 2_000),
        3,
    )


def extract(
    messages: Sequence[Said],
    *,
    min_confidence: float = THRESHOLD,
    categories: Sequence[str] = (),
) -> list[Found]:
    """The learnings of a conversation, those that are surest first."""
    found: list[tuple[float, Candidate]] = []
    for each in _of_turns(messages):
        confidence = _confidence(each, messages)
        least = max(min_confidence, STRICT) if each.category in STRICTER else min_confidence
        if confidence >= least and (not categories or each.category in categories):
            found.append((confidence, each))
    found.sort(key=lambda one: (-one[0], one[1].n, one[1].at))
    kept: list[tuple[float, Candidate]] = []
    for confidence, each in found:
        if not any(_says_the_same(each, other) for _, other in kept):
            kept.append((confidence, each))
    return [_found(confidence, each) for confidence, each in kept[:MOST]]


def _of_turns(messages: Sequence[Said]) -> list[Candidate]:
    """The likeliest sentence of each turn, with the next likely one, which explains it."""
    turns: dict[int, list[Candidate]] = {}
    for each in _candidates(messages):
        turns.setdefault(each.turn, []).append(each)
    found = []
    for some in turns.values():
        first, *others = sorted(some, key=lambda each: -each.likelihood)
        if first.likelihood >= LIKELY:
            beside = next((each for each in others if each.likelihood >= EXPLAINS), None)
            found.append(first if beside is None else _joined(first, beside))
    return found


def _joined(one: Candidate, other: Candidate) -> Candidate:
    """Both as one, in the order in which they were said."""
    if (other.n, other.at) > (one.n, one.at):
        return one._replace(why=other.text)
    return one._replace(text=other.text, why=one.text)


def _candidates(messages: Sequence[Said]) -> Iterator[Candidate]:
    turn = 0
    for n, message in enumerate(messages):
        turn += message.role == PERSON
        if message.role == TOOL:
            continue
        told = sentences(message.content)
        for at, sentence in enumerate(told):
            if not _may_tell(sentence, message.role) or _is_taken_back(n, sentence, messages):
                continue
            likelihood = likelihood_of(features(n, at, told, messages))
            if likelihood >= EXPLAINS:
                category = _category(sentence, message.role)
                yield Candidate(n, at, turn, sentence, category, likelihood, message)


def _may_tell(sentence: str, role: str) -> bool:
    """Whether a sentence is no plan, guess, question or report."""
    if not SHORTEST <= len(sentence.split()) <= LONGEST:
        return False
    if put.QUESTION.search(sentence) or put.NOT.match(sentence) or put.GUESS.search(sentence):
        return False
    if put.TAKEN_BACK.search(sentence) or put.REPORT.match(sentence):
        return False
    return not (put.PASSING.search(sentence) or (role == PERSON and put.REQUEST.match(sentence)))


def features(n: int, at: int, told: Sequence[str], messages: Sequence[Said]) -> dict[str, float]:
    """What is known of a sentence: how it is put, what stands around it, what becomes of it."""
    sentence, message = told[at], messages[n]
    words = len(sentence.split())
    cues = _cues(sentence, message.role)
    subject = about(sentence)
    later = frozenset[str]().union(*(about(each.content) for each in messages[n + 1 :]))
    following = messages[n + 1 : n + 3]
    known = {
        "length": math.log(max(1, words)),
        "short": words < 6,
        "long": words >= 10,
        "longer": words >= 14,
        "person": message.role == PERSON,
        "cue": max((strength for strength, _ in cues), default=0.0),
        "kinds": min(3, len({category for _, category in cues})),
        "technical": min(3, len(put.TECHNICAL.findall(sentence))),
        "unfolds": put.UNFOLDS.search(sentence) is not None,
        "acts": min(3, _count(put.ACTS, sentence)),
        "general": min(3, _count(put.GENERAL, sentence)),
        "first_person": put.FIRST_PERSON.match(sentence) is not None,
        "acted": put.ACTED.search(sentence) is not None,
        "imperative": put.IMPERATIVE.match(sentence) is not None,
        "after_tool": n > 0 and messages[n - 1].role == TOOL,
        "succeeds": any(each.role == TOOL and put.GOOD.search(each.content) for each in following),
        "praised": any(each.role == PERSON and put.GOOD.search(each.content) for each in following),
        "opening": n == 0,
        "place": n / len(messages),
        "taken_up": len(subject & later) / max(1, len(subject)),
        "asked_for": len(subject & about(messages[0].content)) / max(1, len(subject)),
        "alone": len(told) == 1,
        "nth": at,
        **{name: compiled(pattern).search(sentence) is not None for name, pattern in TRAITS},
    }
    return {name: float(value) for name, value in known.items()}


def likelihood_of(known: Mapping[str, float]) -> float:
    """How likely a sentence with these features was learned, from 0 to 1."""
    odds = BIAS + sum(weight * known[name] for name, weight in WEIGHTS.items())
    return 1 / (1 + math.exp(-odds))


def _cues(sentence: str, role: str) -> list[tuple[float, str]]:
    return [
        (cue.strength, cue.category)
        for cue in CUES
        if role in cue.roles and compiled(cue.pattern).search(sentence)
    ]


def _category(sentence: str, role: str) -> str:
    """The kind of learning that a sentence tells, by its cue or else by its words."""
    cues = _cues(sentence, role)
    if cues:
        strongest = max(strength for strength, _ in cues)
        return next(category for strength, category in cues if strength == strongest)
    kinds = (name for name, pattern in KINDS if compiled(pattern).search(sentence))
    return next(kinds, "pattern")


def _is_taken_back(n: int, sentence: str, messages: Sequence[Said]) -> bool:
    """Whether somebody says soon afterwards that it was not so."""
    for later in messages[n + 1 : n + 5]:
        for each in sentences(later.content)[:3] if later.role != TOOL else ():
            if put.TAKEN_BACK.search(each) and (
                about(sentence) & about(each) or _OBJECTS.match(each)
            ):
                return True
    return False


_OBJECTS = re.compile(r"(?i)^\W*(?:no|nope|hmm|wait|that|scratch|i was)\b")


def _confidence(candidate: Candidate, messages: Sequence[Said]) -> float:
    """How much there is to it: .35 to act on, .30 general, .20 clear, .15 supported."""
    text = f"{candidate.text} {candidate.why}".strip()
    sure = 0.45 + 0.35 * candidate.likelihood
    acts = sure + 0.15 * _count(put.ACTS, text)
    general = sure + 0.1 * _count(put.GENERAL, text) - 0.25 * bool(put.ONE_OFF.search(text))
    clear = 0.75 + 0.25 * (put.TECHNICAL.search(text) is not None)
    supported = _support(candidate, messages)
    parts = ((0.35, acts), (0.30, general), (0.20, clear), (0.15, supported))
    return round(sum(weight * max(0.0, min(1.0, part)) for weight, part in parts), 3)


def _count(pattern: re.Pattern[str], text: str) -> int:
    """How many different words of a kind there are."""
    return len({word.lower() for word in pattern.findall(text)})


def _support(candidate: Candidate, messages: Sequence[Said]) -> float:
    """How well what happened afterwards supports it."""
    if candidate.message.role == PERSON:
        return 0.9  # who works there knows
    support = 0.5
    for later in messages[candidate.n + 1 : candidate.n + 4]:
        good, bad = put.GOOD.search(later.content), put.BAD.search(later.content)
        if later.role == TOOL:
            support += 0.3 * bool(good) - 0.3 * bool(bad)
        elif later.role == PERSON:
            support += 0.2 * bool(good)
    return support


def _found(confidence: float, candidate: Candidate) -> Found:
    text = _tidy(candidate.text)
    content = f"{text} {_tidy(candidate.why)}" if candidate.why else text
    return Found(
        category=candidate.category,
        title=_title(text),
        content=content,
        confidence=confidence,
        tags=_tags(content),
        source_message_ids=[candidate.message.id],
    )


def _tidy(sentence: str) -> str:
    """A sentence that stands alone: without what led to it, with a capital and a full stop."""
    text = _LEADING.sub("", re.sub(r"\s+", " ", sentence).strip(" -*•—"))
    text = text[:1].upper() + text[1:]
    return text if text.endswith((".", "!", "?", ":", "`")) else f"{text}."


_LEADING = re.compile(
    r"(?i)^(?:(?:ok(?:ay)?|so|right|well|yes|yep|no|great|good|and|but|also|actually|found it"
    r"|got it|careful|note|nice|done|understood|one more thing|that was it|reproduced)"
    r"\b[,.!:;]*\s+)+"
)
_CLAUSE = re.compile(r"(?:; |: (?=\S+ \S+ \S+)|, (?:so|because|which|and|as|but|since)\b|\. )")
_NAMES = re.compile(
    r"`([\w./-]{2,30})`|(--[a-z][\w-]+)|\b([a-z]+_[a-z_]+)\b|\b([A-Z][a-z]*[A-Z]\w*)\b"
)


def _title(text: str) -> str:
    """The main clause, short enough for a list."""
    clause = _CLAUSE.split(text)[0]
    if len(clause.split()) < SHORTEST:
        clause = text
    title = ""
    for word in clause.rstrip(".:;,").split():
        if len(title) + len(word) > 100:
            return f"{title.rstrip(',;:')}…"
        title = f"{title} {word}".strip()
    return title


def _tags(text: str) -> list[str]:
    """Names of things in a text: what stands in code, flags, identifiers."""
    found = [next(filter(None, each)).lower() for each in _NAMES.findall(text)]
    return sorted(dict.fromkeys(found))[:5]


def _says_the_same(one: Candidate, other: Candidate) -> bool:
    """Whether two candidates are one learning, told twice."""
    first, second = about(one.text), about(f"{other.text} {other.why}")
    shared = len(first & second) / max(1, min(len(first), len(second)))
    return shared >= (OVERLAP if one.category == other.category else ELSEWHERE)


_CHANGED = re.compile(
    r"(?i)\b(?:no longer|not any ?more|instead of|rather than|replac\w+|deprecat\w+|as of"
    r"|since version|from now on|switched (?:from|to|back)|moved (?:from|to|away)|used to"
    r"|was (?:removed|renamed|dropped|reverted)|now)\b"
)
_REFUSES = re.compile(
    r"(?i)\b(?:never|not|don'?t|no|avoid|stop|without|cannot|can't|shouldn'?t|must not)\b"
)
_NUMBER = re.compile(r"\b\d+(?:[.,]\d+)*\b")


def contradicts(new: str, old: str) -> bool:
    """Whether a learning says otherwise than an older one about the same thing.

    It does if one refuses what the other asks for, if it says that something is so no longer, or if
    the same words have other numbers.
    """
    if bool(_REFUSES.search(new)) != bool(_REFUSES.search(old)):
        return _share(new, old) >= OVERLAP
    if _CHANGED.search(new) and not _CHANGED.search(old):
        return _share(new, old) >= OVERLAP / 2
    numbers, before = set(_NUMBER.findall(new)), set(_NUMBER.findall(old))
    return bool(numbers and before and numbers != before) and (
        _share(_NUMBER.sub("", new), _NUMBER.sub("", old)) >= ELSEWHERE
    )


def _share(one: str, other: str) -> float:
    first, second = about(one), about(other)
    return len(first & second) / max(1, min(len(first), len(second)))
