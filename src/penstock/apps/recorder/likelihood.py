"""How likely a sentence of a conversation says what was learned.

Each sentence has features: how it is put, what stands around it, what becomes of it. Their weights
were fitted to the labelled sessions of `proof/corpus` (`python -m proof.learnings --fit`).
"""

import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from penstock.apps.recorder import sentences as put
from penstock.apps.recorder.captured import PERSON, TOOL
from penstock.apps.recorder.cues import CUES, TRAITS
from penstock.apps.recorder.dedupe import about
from penstock.apps.recorder.languages import in_english, language_of
from penstock.apps.recorder.sentences import compiled, sentences

BIAS = -4.37
WEIGHTS: Mapping[str, float] = MappingProxyType(
    {
        "length": 0.42,
        "short": -0.55,
        "long": 0.96,
        "longer": 0.8,
        "person": 0.07,
        "cue": 0.69,
        "kinds": 0.43,
        "technical": 0.09,
        "unfolds": 1.02,
        "acts": 0.22,
        "general": 0.31,
        "first_person": -0.12,
        "acted": -0.53,
        "imperative": 0.72,
        "after_tool": -0.5,
        "succeeds": 0.44,
        "praised": 0.2,
        "opening": -0.69,
        "place": 0.62,
        "taken_up": -0.41,
        "asked_for": -0.55,
        "alone": 0.0,
        "nth": 0.23,
        "ordered": 0.82,
        "ruled": 0.12,
        "refers": 0.1,
        "effects": 0.08,
        "answers": 0.38,
        "asked_how": -0.34,
        "states": -0.05,
        "coded": -1.08,
        "negates": -0.19,
        "reasons": 0.13,
        "times": 0.17,
        "demands": 0.14,
        "behaves": 0.3,
        "tells_past": -0.36,
        "gains": 1.21,
    }
)
"""What each feature adds to the logarithm of the odds that a sentence was learned."""


class Said(NamedTuple):
    """A message, as far as learnings are looked for in it."""

    id: str
    role: str
    content: str


class Conversation:
    """Messages as sentences, each also with its small words in English, and what comes of words."""

    def __init__(self, messages: Sequence[Said]) -> None:
        self.messages = messages
        texts = [each.content for each in messages if each.role != TOOL]
        language = language_of(" ".join(texts))
        self.sentences = [sentences(each.content) if each.role != TOOL else [] for each in messages]
        self.english = [[in_english(each, language) for each in some] for some in self.sentences]
        self._last = {word: n for n, each in enumerate(messages) for word in about(each.content)}
        self._first = about(messages[0].content) if messages else frozenset()

    def taken_up(self, n: int, subject: frozenset[str]) -> float:
        """The share of a subject's words that come again after a message."""
        return sum(self._last.get(word, -1) > n for word in subject) / max(1, len(subject))

    def asked_for(self, subject: frozenset[str]) -> float:
        """The share of a subject's words that the conversation began with."""
        return len(subject & self._first) / max(1, len(subject))

    def before(self, n: int) -> str:
        """The latest message of the person before a message."""
        for at in range(n - 1, max(-1, n - 8), -1):
            if self.messages[at].role == PERSON:
                return " ".join(self.english[at])
        return ""

    def after(self, n: int) -> str:
        """The beginning of what the person says next, if they do before anything else is said."""
        for at in range(n + 1, min(len(self.messages), n + 4)):
            if self.messages[at].role == PERSON:
                return " ".join(self.english[at][:2])
            if self.messages[at].role != TOOL:
                return ""
        return ""


def likelihood_of(known: Mapping[str, float]) -> float:
    """How likely a sentence with these features was learned, from 0 to 1."""
    odds = BIAS + sum(weight * known[name] for name, weight in WEIGHTS.items())
    return 1 / (1 + math.exp(-odds))


def features(conversation: Conversation, n: int, at: int) -> dict[str, float]:
    """What is known of a sentence: how it is put, what stands around it, what becomes of it."""
    message = conversation.messages[n]
    told = conversation.english[n]
    sentence = told[at]
    words = len(sentence.split())
    person = message.role == PERSON
    found = cues(sentence, message.role)
    subject = about(conversation.sentences[n][at])
    asked, answered = conversation.before(n), conversation.after(n)
    following = conversation.messages[n + 1 : n + 3]
    rules = put.RULES.search(sentence) is not None
    known = {
        "length": math.log(max(1, words)),
        "short": words < 6,
        "long": words >= 10,
        "longer": words >= 14,
        "person": person,
        "cue": max((strength for strength, _ in found), default=0.0),
        "kinds": min(3, len({category for _, category in found})),
        "technical": min(3, len(put.TECHNICAL.findall(sentence))),
        "unfolds": put.UNFOLDS.search(sentence) is not None,
        "acts": min(3, count(put.ACTS, sentence)),
        "general": min(3, count(put.GENERAL, sentence)),
        "first_person": put.FIRST_PERSON.match(sentence) is not None,
        "acted": put.ACTED.search(sentence) is not None,
        "imperative": put.IMPERATIVE.match(sentence) is not None,
        "after_tool": n > 0 and conversation.messages[n - 1].role == TOOL,
        "succeeds": any(each.role == TOOL and put.GOOD.search(each.content) for each in following),
        "praised": put.GOOD.search(answered) is not None,
        "opening": n == 0,
        "place": n / len(conversation.messages),
        "taken_up": conversation.taken_up(n, subject),
        "asked_for": conversation.asked_for(subject),
        "alone": len(told) == 1,
        "nth": at,
        "ordered": person and rules,
        "ruled": rules and not person,
        "refers": person and put.REFERS.search(sentence) is not None,
        "effects": put.EFFECTS.search(sentence) is not None,
        "answers": not person and put.ASKS.search(asked) is not None,
        "asked_how": not person and put.ASKS_HOW.search(asked) is not None,
        "states": put.STATUS.match(sentence) is not None,
        "coded": len(put.SYMBOLS.findall(sentence)) > words,
        **{name: compiled(pattern).search(sentence) is not None for name, pattern in TRAITS},
    }
    return {name: float(value) for name, value in known.items()}


def cues(sentence: str, role: str) -> list[tuple[float, str]]:
    """The ways of putting things that a sentence has, each with its strength and category."""
    return [
        (cue.strength, cue.category)
        for cue in CUES
        if role in cue.roles and compiled(cue.pattern).search(sentence)
    ]


def count(pattern: re.Pattern[str], text: str) -> int:
    """How many different words of a kind there are."""
    return len({word.lower() for word in pattern.findall(text)})
