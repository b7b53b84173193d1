"""What is remembered about something: found by meaning and by words, then put in order."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.app.transact import table_store
from penstock.apps.agents.memory.language import statement
from penstock.apps.agents.memory.ranking import Candidate, Similar, rank
from penstock.apps.agents.memory.records import MEMORY_TYPES, Memory, Recalled
from penstock.apps.agents.memory.rows import SHARED, coverage, load, text_of
from penstock.apps.agents.vectors.embedder import WordLlama, embedder_of
from penstock.apps.agents.vectors.store import MEMORIES, vectors_of
from penstock.model.errors import InvalidOption
from penstock.model.options import check_text

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

POOL = 100
"""So many are found by meaning, and as many by words, before they are put in order."""
MOST = 100
LONGEST = 2_000
MOST_WORDS = 40


async def recall(
    app: "Penstock",
    text: str,
    *,
    tenant: str,
    user: str | None,
    k: int,
    memory_type: str | None,
    at: int | None,
    history: bool | None,
) -> list[Recalled]:
    """Return what is remembered about something, the best first."""
    if not 1 <= k <= MOST:
        raise InvalidOption("k", k, f"1 to {MOST}")
    for name, value in (("text", text), ("tenant", tenant), ("user", user or "")):
        check_text(name, value)
    if not 0 < len(text.strip()) <= LONGEST:
        raise InvalidOption("text", text[:50], f"1 to {LONGEST:,} characters")
    if memory_type is not None and memory_type not in MEMORY_TYPES:
        raise InvalidOption("memory_type", memory_type, f"one of: {', '.join(MEMORY_TYPES)}")
    similarity = await _by_meaning(app, text, tenant, user)
    words = _as_query(text, table_store(app, "A search").dialect, tenant)

    def question(tx: Any) -> tuple[list[Memory], dict[str, str], dict[str, set[str]], int]:
        asked = {"words": words, "tenant": tenant, "user": user, "limit": POOL}
        rows = tx.agents.rows("memories_with_words", asked) if words else []
        found = load(tx, [*similarity, *(str(row[0]) for row in rows)], tenant)
        newer, others = _superseded(tx, found, tenant)
        made: dict[str, set[str]] = {}
        if memory_type is None:
            made = coverage(tx, [memory.id for memory in found])
            others += load(tx, sorted(made.keys() - {memory.id for memory in found}), tenant)
        wanted = [
            memory
            for memory in (*found, *others)
            if not (memory.expires_at and memory.expires_at <= tx.now)
            and (memory_type is None or memory.memory_type == memory_type)
            and (user is None or memory.user_id in (user, None) or memory.is_shared)
        ]
        return wanted, newer, made, tx.now

    memories, newer, made, now = await app.read(question)
    least = min(similarity.values(), default=0.0)
    candidates = [
        Candidate(
            id=memory.id,
            content=memory.content,
            # What only words have found is no nearer than the last one that meaning has found.
            similarity=similarity.get(memory.id, least),
            importance=memory.importance,
            valid_from=memory.valid_from,
            valid_to=memory.valid_to,
        )
        for memory in memories
    ]
    ranked = rank(
        text,
        candidates,
        now,
        superseded_by=newer,
        made_of=made,
        words=_words_of(app),
        history=history,
        at=at,
    )
    by_id = {memory.id: memory for memory in memories}
    return [
        Recalled(by_id[each.id], score, similarity.get(each.id, least))
        for each, score in ranked[:k]
    ]


async def _by_meaning(
    app: "Penstock", text: str, tenant: str, user: str | None
) -> dict[str, float]:
    """The nearest memories, and how near each is."""
    store = vectors_of(app)
    hits = await store.search_text(MEMORIES, text, POOL, tenant=tenant, user=user)
    if user is not None:
        hits = [*hits, *await store.search_text(SHARED, text, POOL, tenant=tenant)]
    return {hit.id: hit.score for hit in hits}


def _superseded(
    tx: Any, found: Sequence[Memory], tenant: str
) -> tuple[dict[str, str], list[Memory]]:
    """Which memories took the place of which, and those of them that were not found."""
    newer: dict[str, str] = {}
    known = {memory.id for memory in found}
    others: list[Memory] = []
    reached = sorted(known)
    while reached and len(others) < POOL:
        rows = tx.agents.rows("superseded_among", {"ids": text_of(reached), "tenant": tenant})
        for source, target in rows:
            newer.setdefault(str(target), str(source))
        reached = sorted({each for row in rows for each in row if each not in known})
        others += load(tx, reached, tenant)
        known.update(reached)
    return newer, others


def _as_query(text: str, dialect: str, tenant: str) -> str:
    """The words of a question as FTS5 or PostgreSQL takes them; any of them will do."""
    forms = list(dict.fromkeys(statement(text).forms))[:MOST_WORDS]
    parts = [part for form in forms for part in _letters(form)]
    if not parts:
        return ""
    if dialect != "sqlite":
        return " | ".join(f"'{part}'" for part in parts)
    words = " OR ".join(f'"{part}"' for part in parts)
    owner = " ".join(_letters(tenant))
    return f'content : ({words}) AND tenant_id : "{owner}"' if owner else f"content : ({words})"


def _letters(text: str) -> list[str]:
    """The runs of letters and digits of a text, with which no query can be broken."""
    return "".join(letter if letter.isalnum() else " " for letter in text).split()


class Words:
    """Vectors of single words, each made once."""

    def __init__(self, embedder: WordLlama) -> None:
        self._embedder = embedder
        self._known: dict[str, Any] = {}

    def __call__(self, words: Sequence[str]) -> Any:
        """Return an array, a row for each word."""
        import numpy

        if len(self._known) > 50_000:
            self._known.clear()
        lacking = [word for word in dict.fromkeys(words) if word not in self._known]
        if lacking:
            self._known.update(zip(lacking, self._embedder.embed(lacking), strict=True))
        return numpy.stack([self._known[word] for word in words])


def _words_of(app: "Penstock") -> Similar | None:
    """Vectors of words, of an embedder that makes them in no time."""
    embedder = embedder_of(app)
    if not isinstance(embedder, WordLlama):
        return None
    return _made.setdefault(embedder.model, Words(embedder))


_made: dict[str, Words] = {}
