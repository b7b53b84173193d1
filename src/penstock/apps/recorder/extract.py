"""What was learned in a conversation, found without a model: the sentences that say so.

How likely a sentence says it is told by `likelihood.py`. A learning is what belongs together: a
cause with its remedy, a rule with what it is about, a figure with what brought it about; at most
three sentences, which may stand in neighbouring turns, from a prompt to the next. How well it can
be acted on, how general, how clear and how well supported it is makes its confidence; guesses,
plans, questions and what was taken back are left out.
"""

import math
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from penstock.apps.recorder import sentences as put
from penstock.apps.recorder.captured import PERSON, TOOL
from penstock.apps.recorder.cues import KINDS
from penstock.apps.recorder.dedupe import about
from penstock.apps.recorder.learnings import Found
from penstock.apps.recorder.likelihood import (
    Conversation,
    Said,
    count,
    cues,
    features,
    likelihood_of,
)
from penstock.apps.recorder.sentences import compiled

EXTRACTOR = 2
"""The version of what stands here; a conversation is looked through again by a newer one."""
OFFLINE = "offline"

VALUE_GATE = 0.3
FEWEST = 3
THRESHOLD = 0.6
STRICT = 0.65
STRICTER = ("best_practice", "anti_pattern")
MOST = 8
"""No more learnings than these come of one conversation."""

ENOUGH = 1.2
"""So much likelihood, of all sentences together, makes a conversation worth looking through."""
SHORTEST = 5
LONGEST = 60
"""Words of a sentence that is looked at."""
LIKELY = 0.45
"""From here on a sentence is taken for something that was learned."""
DIAGNOSED = 0.65
"""From here on, if it says what was wrong and nobody says what to do about it."""
EXPLAINS = 0.25
"""From here on it may explain a likelier one of the same turn."""
MENTIONED = 0.1
"""From here on it may be what a rule of a person refers to."""
BRIEF = 8
"""What a person says in fewer words goes on with the same subject."""
NEAR = 12
"""What belongs together is no further apart than so many others."""
PARTS = 3
"""No more sentences than these make a learning."""
OVERLAP = 0.55
ELSEWHERE = 0.75
"""Two candidates that share more of their words are one; of different categories, far more."""


class Candidate(NamedTuple):
    """A sentence that may say what was learned, in its message and turn."""

    n: int
    at: int
    turn: int
    text: str
    english: str
    likelihood: float
    message: Said

    @property
    def advises(self) -> bool:
        """Whether it says what to do, and not only how things are."""
        text = self.english
        if self.message.role == PERSON and put.RULES.search(text):
            return True
        return put.REMEDY.search(text) is not None or put.IMPERATIVE.match(text) is not None


class Unit(NamedTuple):
    """Sentences that make one learning, the likeliest first."""

    parts: tuple[Candidate, ...]

    @property
    def head(self) -> Candidate:
        """The sentence that says it best."""
        return self.parts[0]

    @property
    def advises(self) -> bool:
        """Whether any of its sentences says what to do."""
        return any(each.advises for each in self.parts)

    @property
    def likelihood(self) -> float:
        """How likely it was learned: what a person and a model both say is likelier."""
        unlikely = {each.message.role: 1 - each.likelihood for each in reversed(self.parts)}
        return 1 - math.prod(unlikely.values())

    @property
    def told(self) -> list[str]:
        """Its sentences in the order in which they were said."""
        return [each.text for each in sorted(self.parts, key=lambda each: (each.n, each.at))]

    @property
    def text(self) -> str:
        """All that it says."""
        return " ".join(self.told)

    @property
    def category(self) -> str:
        """The kind of learning that it is."""
        return _category(self.head.english, self.head.message.role)


def value_of(messages: Sequence[Said]) -> float:
    """How much there may be to learn from a conversation, from 0 to 1."""
    if len(messages) < FEWEST:
        return 0.0
    texts = [each.content for each in messages if each.role != TOOL]
    tools = [each.content for each in messages if each.role == TOOL]
    went_wrong = any(put.BAD.search(text) for text in (*tools, *texts))
    went_right = any(put.GOOD.search(text) for text in (*tools[-3:], *texts[-4:]))
    telling = 0.0
    for each in _candidates(Conversation(messages)):
        telling += each.likelihood
        if telling >= ENOUGH:
            break
    said = sum(len(text.split()) for text in texts)
    return round(
        0.6 * min(1.0, telling / ENOUGH)
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
    found: list[tuple[float, Unit]] = []
    for unit in _units(Conversation(messages)):
        confidence = _confidence(unit, messages)
        least = max(min_confidence, STRICT) if unit.category in STRICTER else min_confidence
        if confidence >= least and (not categories or unit.category in categories):
            found.append((confidence, unit))
    found.sort(key=lambda one: (-one[0], one[1].head.n, one[1].head.at))
    kept: list[tuple[float, Unit]] = []
    for confidence, unit in found:
        if len(kept) < MOST and not any(_says_the_same(unit, other) for _, other in kept):
            kept.append((confidence, unit))
    return [_found(confidence, unit) for confidence, unit in kept]


def _units(conversation: Conversation) -> list[Unit]:
    """What belongs together: a cause with its remedy, a rule with what it is about."""
    said: dict[int, list[Candidate]] = {}
    for each in _candidates(conversation):
        said.setdefault(each.n, []).append(each)
    units: list[Unit] = []
    for some in said.values():
        unit = _of_message(some)
        latest = range(max(0, len(units) - NEAR), len(units))
        near = (n for n in latest if _belongs(unit, units[n], conversation))
        best = max(near, key=lambda n: units[n].likelihood, default=None)
        if best is None:
            units.append(unit)
        else:
            units[best] = _joined(units[best], unit)
    return [each for each in units if _holds(each)]


def _of_message(some: Sequence[Candidate]) -> Unit:
    """The likeliest sentence of a message, with the one that explains it."""
    first, *others = sorted(some, key=lambda each: -each.likelihood)
    beside = [each for each in others if each.likelihood >= EXPLAINS]
    return Unit((first, *beside[: PARTS - 2]))


def _takes_up(candidate: Candidate) -> bool:
    """Whether a person makes a rule of what was said before, or agrees to it."""
    return candidate.message.role == PERSON and put.REFERS.search(candidate.english) is not None


def _belongs(unit: Unit, before: Unit, conversation: Conversation) -> bool:
    """Whether it is the remedy, the result or the rule to what was said just before."""
    if unit.head.turn - before.head.turn > 1 or len(before.parts) >= PARTS:
        return False
    if _takes_up(unit.head):
        return before.head.message.role != PERSON
    if not _same_subject(unit, before, conversation):
        return False
    if unit.head.message.role == PERSON:
        return unit.advises and before.head.message.role != PERSON
    return unit.advises and not before.advises


def _same_subject(unit: Unit, before: Unit, conversation: Conversation) -> bool:
    """Whether two are about the same thing: by their words, or since little was said between."""
    between = range(before.head.n + 1, unit.head.n)
    asked = [n for n in between if conversation.messages[n].role == PERSON]
    if all(len(conversation.messages[n].content.split()) <= BRIEF for n in asked):
        return True
    first, second = about(before.head.message.content), about(unit.head.message.content)
    return bool(first & second)


def _joined(one: Unit, other: Unit) -> Unit:
    parts = sorted((*one.parts, *other.parts), key=lambda each: -each.likelihood)
    return Unit(tuple(parts[:PARTS]))


def _holds(unit: Unit) -> bool:
    """Whether it is likely enough: what only says how things are must be likelier."""
    return unit.likelihood >= (LIKELY if unit.advises else DIAGNOSED)


def _candidates(conversation: Conversation) -> Iterator[Candidate]:
    turn = 0
    for n, message in enumerate(conversation.messages):
        turn += message.role == PERSON
        for at, sentence in enumerate(conversation.sentences[n]):
            english = conversation.english[n][at]
            if n == 0 and not put.FROM_NOW_ON.search(english):
                continue  # the task
            if not _may_tell(english, message.role) or _is_taken_back(n, sentence, conversation):
                continue
            likelihood = likelihood_of(features(conversation, n, at))
            if likelihood >= MENTIONED:
                yield Candidate(n, at, turn, sentence, english, likelihood, message)


def _may_tell(sentence: str, role: str) -> bool:
    """Whether a sentence is no plan, guess, question or report."""
    if not SHORTEST <= len(sentence.split()) <= LONGEST:
        return False
    if put.QUESTION.search(sentence) or put.GUESS.search(sentence):
        return False
    if put.REDACTED.search(sentence):
        return False
    if (
        put.TAKEN_BACK.search(sentence)
        or put.REPORT.match(sentence)
        or put.PASSING.search(sentence)
    ):
        return False
    if role == PERSON and put.STANDING.search(sentence):
        return True
    if put.NOT.match(sentence):
        return put.PROPOSED.match(sentence) is not None
    return not (role == PERSON and put.REQUEST.match(sentence))


def _category(sentence: str, role: str) -> str:
    """The kind of learning that a sentence tells, by its cue or else by its words."""
    found = cues(sentence, role)
    if found:
        strongest = max(strength for strength, _ in found)
        return next(category for strength, category in found if strength == strongest)
    kinds = (name for name, pattern in KINDS if compiled(pattern).search(sentence))
    return next(kinds, "pattern")


def _is_taken_back(n: int, sentence: str, conversation: Conversation) -> bool:
    """Whether somebody says soon afterwards that it was not so."""
    for later in conversation.english[n + 1 : n + 5]:
        for each in later[:3]:
            if put.TAKEN_BACK.search(each) and (
                about(sentence) & about(each) or _OBJECTS.match(each)
            ):
                return True
    return False


_OBJECTS = re.compile(r"(?i)^\W*(?:no|nope|hmm|wait|that|scratch|i was)\b")


def _confidence(unit: Unit, messages: Sequence[Said]) -> float:
    """How much there is to it: .35 to act on, .30 general, .20 clear, .15 supported."""
    text = " ".join(each.english for each in unit.parts)
    sure = 0.45 + 0.35 * unit.likelihood
    acts = sure + 0.15 * count(put.ACTS, text)
    general = sure + 0.1 * count(put.GENERAL, text) - 0.25 * bool(put.ONE_OFF.search(text))
    clear = 0.75 + 0.25 * (put.TECHNICAL.search(text) is not None)
    supported = _support(unit.head, messages)
    parts = ((0.35, acts), (0.30, general), (0.20, clear), (0.15, supported))
    return round(sum(weight * max(0.0, min(1.0, part)) for weight, part in parts), 3)


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


def _found(confidence: float, unit: Unit) -> Found:
    content = " ".join(_tidy(each) for each in unit.told)
    sources = sorted({(each.n, each.message.id) for each in unit.parts})
    return Found(
        category=unit.category,
        title=_title(_tidy(unit.head.text)),
        content=content,
        confidence=confidence,
        tags=_tags(content),
        source_message_ids=[message_id for _, message_id in sources],
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
    r"`([\w./-]{2,30})`|(--[a-z][\w-]+)|\b([a-z]+_[a-z_]+)\b|\b([A-Z][a-z]+[A-Z]\w*)\b"
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


def _says_the_same(one: Unit, other: Unit) -> bool:
    """Whether two of them are one learning, told twice."""
    first, second = about(one.head.text), about(other.text)
    shared = len(first & second) / max(1, min(len(first), len(second)))
    return shared >= (OVERLAP if one.category == other.category else ELSEWHERE)
