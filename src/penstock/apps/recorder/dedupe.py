"""Learnings that say the same: by a hash of their words, by SimHash, by what they mean."""

import logging
import re
from collections.abc import Sequence
from functools import cache, lru_cache
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

from msgspec import Struct

from penstock.model.errors import MissingExtra

SIMHASH_BITS = 64
NEAR = 3
"""SimHashes that differ in fewer bits are of the same text, but for a word or two."""
ALIKE = 0.85
"""Texts whose embeddings have a greater cosine say the same."""
RELATED = 0.6
"""Above this, they are about the same thing, and may contradict each other."""
SHORT = 8
"""Texts of fewer words are too short to be compared by SimHash."""

SAME_WORDS = 0.55
NEARLY_ALL = 0.75
"""Shares of the words of two texts from which on they are about the same, and say the same."""

_WORD = re.compile(r"[^\W_]+(?:[._'/-][^\W_]+)*")
_STOPPED = """
a an and are as at be been but by can did do does for from get got had has have he her his
how i if in into is it its just me my no not now of on one or our out she so than that the
their them then there these they this to too up us was we were what when which while who
will with would you your
"""
_STOP = frozenset(_STOPPED.split())
"""Words that say nothing of what a sentence is about."""


class Known(Struct, frozen=True):
    """A learning that is there already, as far as another is compared with it."""

    id: str
    title: str
    content: str
    dedupe_hash: str

    @property
    def text(self) -> str:
        """All that it says."""
        return f"{self.title}. {self.content}"


def canonical(text: str) -> str:
    """The words of a text, without case and punctuation."""
    return " ".join(_WORD.findall(text.lower()))


def about(text: str) -> frozenset[str]:
    """The words that say what a text is about."""
    return frozenset(_stem(word) for word in canonical(text).split() if word not in _STOP)


def _stem(word: str) -> str:
    for ending in ("ing", "ed", "es", "s"):
        if len(word) > len(ending) + 3 and word.endswith(ending):
            return word.removesuffix(ending)
    return word


def dedupe_hash(category: str, title: str, content: str) -> str:
    """The SHA-256 that learnings which say the same in the same words share."""
    said = "\n".join((category, canonical(title), canonical(content)))
    return sha256(said.encode("utf-8", "replace")).hexdigest()


def simhash(text: str) -> int:
    """A number that differs in few bits between texts which differ in few words."""
    words = canonical(text).split()
    shingles = [" ".join(words[n : n + 2]) for n in range(max(1, len(words) - 1))]
    weights = [0] * SIMHASH_BITS
    for shingle in [*words, *shingles]:
        hashed = int.from_bytes(blake2b(shingle.encode(), digest_size=8).digest(), "big")
        for bit in range(SIMHASH_BITS):
            weights[bit] += 1 if hashed >> bit & 1 else -1
    return sum(1 << bit for bit, weight in enumerate(weights) if weight > 0)


def distance(one: int, other: int) -> int:
    """In how many bits two SimHashes differ."""
    return (one ^ other).bit_count()


def duplicate_of(text: str, hashed: str, known: Sequence[Known]) -> Known | None:
    """The first of some learnings of the same category that says the same."""
    for each in known:
        if each.dedupe_hash == hashed:
            return each
    if len(canonical(text).split()) >= SHORT:
        ours = simhash(text)
        for each in known:
            if distance(ours, _simhash(each.text)) < NEAR:
                return each
    near = nearest(text, known)
    return near[0] if near is not None and near[1] > ALIKE else None


def nearest(text: str, known: Sequence[Known]) -> tuple[Known, float] | None:
    """The learning that means most nearly the same, and the cosine; None without any."""
    if not known:
        return None
    ours = _embedded(text)
    import numpy

    theirs = numpy.stack([_embedded(each.text) for each in known])
    cosines = theirs @ ours
    best = int(cosines.argmax())
    return known[best], float(cosines[best])


@lru_cache(maxsize=20_000)
def _simhash(text: str) -> int:
    return simhash(text)


@lru_cache(maxsize=20_000)
def _embedded(text: str) -> Any:
    """What a text means, as a vector of length 1."""
    embedder = _embedder()
    import numpy

    vector = embedder.embed([canonical(text)])[0].astype(numpy.float32)
    length = float(numpy.linalg.norm(vector))
    return vector / length if length else vector


@cache
def _embedder() -> Any:
    """The embedder whose weights are inside its package: nothing is fetched."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        import wordllama  # type: ignore[import-untyped]
    except ImportError as error:
        raise MissingExtra("recorder", "wordllama") from error
    finally:  # it sets up logging for everybody, so that requests would show with all of their URLs
        root.handlers[:] = handlers
        root.setLevel(level)
    folder = Path(wordllama.__file__).parent
    return wordllama.WordLlama.load(cache_dir=folder, disable_download=True)


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
        return _share(new, old) >= SAME_WORDS
    if _CHANGED.search(new) and not _CHANGED.search(old):
        return _share(new, old) >= SAME_WORDS / 2
    numbers, before = set(_NUMBER.findall(new)), set(_NUMBER.findall(old))
    return bool(numbers and before and numbers != before) and (
        _share(_NUMBER.sub("", new), _NUMBER.sub("", old)) >= NEARLY_ALL
    )


def _share(one: str, other: str) -> float:
    first, second = about(one), about(other)
    return len(first & second) / max(1, min(len(first), len(second)))
