"""The gate in front of memories: what restates a known one of the same user is not stored."""

from collections.abc import Iterable, Sequence
from typing import Any

from penstock.apps.agents.memory.changes import restates
from penstock.apps.agents.memory.language import content_hash
from penstock.apps.agents.memory.records import Memory, NewMemory
from penstock.apps.agents.memory.rows import load, memory_of, text_of
from penstock.model.ids import derived_id, new_id

RESTATED_FROM = 0.7
"""Less similar texts never say the same."""


def restated(new: NewMemory, near: Iterable[str], known: dict[str, Memory]) -> Memory | None:
    """The memory of the same user that says the same, if there is one."""
    said = content_hash(new.content.strip())
    for memory in known.values():
        if memory.user_id == new.user_id and content_hash(memory.content) == said:
            return memory
    for each in near:
        memory_near = known.get(each)
        if (
            memory_near is not None
            and memory_near.user_id == new.user_id
            and restates(memory_near.content, new.content)
        ):
            return memory_near
    return None


def known_memories(
    tx: Any, tenant: str, texts: Sequence[str], near: Sequence[Sequence[str]]
) -> dict[str, Memory]:
    """The memories that new ones may restate: those that hold."""
    hashes = text_of([content_hash(text) for text in texts])
    asked = {"tenant": tenant, "ids": hashes, "now": tx.now}
    found = [memory_of(row) for row in tx.agents.rows("same_memories", asked)]
    ids = sorted({each for some in near for each in some})
    found += [
        memory
        for memory in load(tx, ids, tenant)
        if memory.valid_to is None and not (memory.expires_at and memory.expires_at <= tx.now)
    ]
    return {memory.id: memory for memory in found}


def id_of(tenant: str, new: NewMemory) -> str:
    """The same for what comes from the same source, however often it comes."""
    if new.source_id is None:
        return new_id()
    said = content_hash(new.content.strip())
    return derived_id(
        new.at or 0, "memory", tenant, new.user_id or "", new.source_type, new.source_id, said
    )
