"""What can be told of a sentence without a model: its words, names, values, and whether it denies.

It is meant for short statements in English, as agents keep them. In other languages words and
numbers are still words and numbers; names, tenses and negations are then not seen.
"""

import re
import unicodedata
from functools import lru_cache
from hashlib import blake2b

from msgspec import Struct

_WORD = re.compile(r"[^\W_]+(?:['’.,:-][^\W_]+)*%?")
_CLAUSE = re.compile(r"(?<=[.!?])\s+|\n+")
_POSSESSIVE = re.compile(r"['’]s?$")
_NOT = re.compile(r"n['’]t$")
_NUMBER = re.compile(r"\d+(?:[.:-]\d+)*(?:st|nd|rd|th|am|pm|h|km|kg|k|m)?")
_BELOW_ZERO = re.compile(r"(?<![\w-])[-−]\.?\d[\d.,]*\b")
_MARK = re.compile(r"[^\w\s.,;:!()'’\"-]")
_MARKS = frozenset("#@?&/\\%؟？")
_SYMBOLS = frozenset({"Sm", "Sc", "So"})
"""Marks that say something, and the categories of Unicode whose marks do: sums, money, pictures."""
_YEAR = re.compile(r"(?:19|20)\d\d")


def _list(text: str) -> list[str]:
    return text.split()


_GRAMMAR = frozenset(
    _list(
        "a about after again all also am an and any are as at be because been before being both "
        "but by can come could did do does doing done each else ever every for from get gets "
        "getting go goes got had has have having he her hers him his how i if in instead into is "
        "it its just made make makes many me more most much my now of off on once one only or "
        "other our out over own per she should so some such take takes taken than that the their "
        "them then there these they this those to too under until up upon us use used uses very "
        "was we were what when where which while who whom whose why will with would yet you your "
        "still shall may might must let lets mr mrs ms dr currently ago anyone someone somebody "
        "anybody something anything"
    )
)
"""Words that carry grammar and no content."""

_EMPTY = frozenset(_list("a also an and just so that the very"))
"""Words without which a statement says the same."""

_NEGATIONS = frozenset(
    _list(
        "not no never none nobody nothing neither nor without cannot stop stopped stops quit "
        "avoid avoids refuse refuses refused dislike dislikes hate hates except hardly nowhere "
        "unable cancelled canceled"
    )
)
_CHANGES = frozenset(
    _list(
        "now longer moved moves anymore instead changed changes switched switch new since became "
        "becomes postponed delayed rescheduled replaced replaces left leaves leaving sold retired "
        "stopped quit again finally today extended extends shortened raised lowered increased "
        "decreased renamed joined promoted already off returned back only"
    )
)
"""Words of a statement that something is not as it was."""

_MONTHS = _list(
    "january february march april may june july august september october november december"
)
_DAYS = _list("monday tuesday wednesday thursday friday saturday sunday")
_COUNTS = {
    word: number
    for number, word in enumerate(
        _list("one two three four five six seven eight nine ten eleven twelve"), 1
    )
}
_TENS = {
    word: 10 * number
    for number, word in enumerate(_list("twenty thirty forty fifty sixty seventy eighty ninety"), 2)
}
_PAST = re.compile(r"\b(?:was|were|had|did|once)\b", re.IGNORECASE)
_FORMER = re.compile(
    r"\b(?:before|previous(?:ly)?|former(?:ly)?|original(?:ly)?|used? to|back then|earlier|"
    r"initial(?:ly)?|at first|at the (?:start|beginning|outset)|until|no longer|"
    r"last (?:year|spring|summer|autumn|fall|winter|month))\b",
    re.IGNORECASE,
)
_LATEST = re.compile(
    r"\b(?:now|nowadays|current(?:ly)?|these days|at present|at the moment|today|still|by now|"
    r"latest|newest|present(?:ly)?|any ?more|finally|in the end|(?:most )?recently|eventually|"
    r"ended up|after)\b",
    re.IGNORECASE,
)
_SEASONS = {
    "winter": (12, 2),
    "spring": (3, 5),
    "summer": (6, 8),
    "autumn": (9, 11),
    "fall": (9, 11),
}
_MONTH_NAMED = re.compile(
    rf"\b(?:in|of|since|during|around|until|early|late|mid|mid-|between|and|from|last)[ -]"
    rf"({'|'.join((*_MONTHS, *_SEASONS))})\b(?: ((?:19|20)\d\d))?",
    re.IGNORECASE,
)


_EVENT = re.compile(
    r"\b(?:had|got|took|saw|went|held|viewed|found|came|opened|met|gave|sailed|heard|applied|"
    r"noticed|visited|bought|decided|won|lost|ate|read|wrote|passed|finished|sent|told|asked|"
    r"called|finished|attended|received|ordered|was born)\b",
    re.IGNORECASE,
)
"""What happened once is not undone by what happened since."""


class Statement(Struct, frozen=True):
    """A text by what it consists of; words are stems, in their order, without grammar."""

    words: tuple[str, ...]
    forms: tuple[str, ...]
    """The same words as they are written, in lower case."""
    names: frozenset[str]
    values: frozenset[str]
    """Numbers, days and months: `1620`, `mon`, `2026-06`."""
    kinds: frozenset[str]
    """What its values are of: `day`, `month`, `year`, `number`."""
    is_negative: bool
    tells_change: bool
    is_event: bool
    vocabulary: frozenset[str]
    """Its words, each once."""
    signs: tuple[str, ...]
    said: tuple[str, ...]
    """All of it but what is empty, grammar included, in its order: to Rome is not from Rome."""


class Question(Struct, frozen=True):
    """What somebody wants to know, as far as its wording tells."""

    statement: Statement
    past: float
    """How clearly it asks for what was and is no more, 0 to 1."""
    months: tuple[int, int] | None
    """The first and last month, 1 to 12, that it asks about."""
    wants: frozenset[str]
    """What an answer has in it: a `date`, a `name`, a `number`; empty if anything."""


def plain(text: str) -> str:
    """A text in lower case without accents."""
    if text.isascii():
        return text.lower()
    apart = unicodedata.normalize("NFKD", text.lower())
    return "".join(letter for letter in apart if not unicodedata.combining(letter))


@lru_cache(maxsize=50_000)
def stem(word: str) -> str:
    """A word without its ending, so that forms of it are the same."""
    for ending, instead in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            word = word[: len(word) - len(ending)] + instead
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeioulsz":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word[-1] in "ey" else word


_ENDINGS = (
    *(("ational", "at"), ("ization", "iz"), ("isation", "is"), ("fulness", "ful")),
    *(("ations", "at"), ("ation", "at"), ("ments", ""), ("ment", ""), ("ness", "")),
    *(("ingly", ""), ("edly", ""), ("ings", ""), ("ing", ""), ("ied", "y"), ("ies", "y")),
    *(("ers", ""), ("ed", ""), ("es", ""), ("ly", ""), ("er", ""), ("ss", "ss"), ("s", "")),
)


def signs(text: str) -> tuple[str, ...]:
    """What a text says without words: `-5`, the `++` of C++, `<`, `€`, a picture, a question."""
    below = (each.replace("−", "-").rstrip(".,") for each in _BELOW_ZERO.findall(text))
    marks = (
        mark
        for mark in _MARK.findall(text)
        if mark in _MARKS or unicodedata.category(mark) in _SYMBOLS
    )
    return (*below, *marks)


def content_hash(text: str) -> str:
    """What texts share that have the same words and signs, whatever their case and commas."""
    words = " ".join((*_WORD.findall(plain(text)), *signs(text)))
    return blake2b(words.encode("utf-8", "replace"), digest_size=16).hexdigest()


def sentences(text: str) -> list[str]:
    """The sentences of a text."""
    return [part.strip() for part in _CLAUSE.split(text) if part.strip()]


@lru_cache(maxsize=20_000)
def statement(text: str) -> Statement:
    """Take a text apart, or remember how it was."""
    return take_apart(text)


def take_apart(text: str) -> Statement:
    """Tell what a text consists of."""
    words: list[str] = []
    forms: list[str] = []
    said: list[str] = []
    names: set[str] = set()
    values: set[str] = set()
    kinds: set[str] = set()
    negative = changes = False
    for sentence in sentences(text):
        for place, written in enumerate(_WORD.findall(sentence)):
            bare = _POSSESSIVE.sub("", written)
            word = plain(bare)
            if word in _NEGATIONS or _NOT.search(word):
                negative = True
            changes = changes or word in _CHANGES
            kind = _value(word, bare, values)
            if kind:
                kinds.add(kind)
                words.append(word if kind in ("number", "year") else word[:3])
                said.append(words[-1])
                forms.append(word)
                continue
            if word not in _EMPTY:
                said.append(stem(word))
            if word in _GRAMMAR or _NOT.search(word) or word in ("not", "no", "never"):
                continue
            root = stem(word)
            words.append(root)
            forms.append(word)
            if bare[0].isupper() and (place > 0 or _is_name(bare, sentence)):
                names.add(root)
    return Statement(
        tuple(words),
        tuple(forms),
        frozenset(names),
        frozenset(values),
        frozenset(kinds),
        negative,
        changes,
        bool(_EVENT.search(text)),
        frozenset(words),
        signs(text),
        tuple(said),
    )


def _is_name(word: str, sentence: str) -> bool:
    """Whether a capital at the beginning of a sentence is more than that."""
    rest = sentence[len(word) :]
    return rest.startswith(("'s", "’s")) or word in rest or plain(word) not in _COMMON_FIRST


_COMMON_FIRST = _GRAMMAR | _NEGATIONS | frozenset({*_MONTHS, *_DAYS, *_COUNTS})


def _value(word: str, written: str, values: set[str]) -> str:
    """Note a number, day or month; return what it is, or nothing."""
    if word.endswith(("day", "days")) and word.rstrip("s") in _DAYS:
        values.add(word[:3])
        return "day"
    if word in _MONTHS and (word not in ("may", "march") or written[0].isupper()):
        values.add(word[:3])
        return "month"
    if word[0].isdigit():
        digits = word.replace(",", "").rstrip("%")
        if _NUMBER.fullmatch(digits):
            values.add(digits)
            return "year" if _YEAR.fullmatch(digits) else "number"
    if word in _COUNTS and word != "one":
        values.add(str(_COUNTS[word]))
        return "number"
    if word in _TENS:
        values.add(str(_TENS[word]))
        return "number"
    return ""


_WANTS = (
    (re.compile(r"\b(?:when|what (?:day|date|time|month|year)|which (?:day|date|month|year)|how "
                r"long|since when|until when|by when|what days|which days)\b", re.I), "date"),
    (re.compile(r"\b(?:who|whom|whose|called|name|named)\b", re.I), "name"),
    (re.compile(r"\b(?:how (?:many|much|old|big|large|far|often)|what (?:price|number|amount|sum))"
                r"\b", re.I), "number"),
    (re.compile(r"\bwhere\b", re.I), "name"),
)  # fmt: skip


@lru_cache(maxsize=1_000)
def question(text: str) -> Question:
    """Take a question apart."""
    past = 1.0 if _FORMER.search(text) else 0.5 if _PAST.search(text) else 0.0
    if _LATEST.search(text):
        past = 0.0
    wants = frozenset(what for pattern, what in _WANTS if pattern.search(text))
    months = _months(text) if past else None
    return Question(statement(text), past, months, wants)


def _months(text: str) -> tuple[int, int] | None:
    """The months that a question about the past names."""
    found: list[int] = []
    for named in _MONTH_NAMED.finditer(text):
        word = named[1].lower()
        found += _SEASONS.get(word, ()) or (_MONTHS.index(word) + 1,)
    if re.search(r"\b(?:start|beginning|outset) of the year\b", text, re.IGNORECASE):
        found += (1, 2)
    return (found[0], found[-1]) if found else None
