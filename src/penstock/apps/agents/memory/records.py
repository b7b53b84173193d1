"""What agents remember, as programs, pages and the API see it.

Times are UTC milliseconds. A memory is `episodic` (something that happened or was said),
`semantic` (something that holds) or `procedural` (how something is done).
"""

from typing import Any

from msgspec import Struct

MEMORY_TYPES: tuple[str, ...] = ("episodic", "semantic", "procedural")
EDGE_TYPES: tuple[str, ...] = ("related_to", "caused_by", "part_of", "supersedes")


class Memory(Struct, frozen=True, kw_only=True):
    """Something remembered of a user, or of a tenant if `user_id` is None.

    It holds from `valid_from` until `valid_to`, which is None while nothing has superseded it.
    """

    id: str
    tenant_id: str
    workspace_id: str | None
    user_id: str | None
    memory_type: str
    content: str
    embedding_id: str | None
    source_type: str
    source_id: str | None
    importance: float
    access_count: int
    last_accessed_at: int | None
    is_shared: bool
    expires_at: int | None
    valid_from: int
    valid_to: int | None
    metadata: dict[str, Any]
    created_at: int
    updated_at: int


class NewMemory(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Something to remember.

    One with a `source_id` is remembered once, however often it comes from there. `at` is since
    when it holds, in UTC milliseconds, or now.
    """

    content: str
    user_id: str | None = None
    workspace_id: str | None = None
    memory_type: str = "episodic"
    importance: float = 0.5
    source_type: str = "agent"
    source_id: str | None = None
    is_shared: bool = False
    expires_at: int | None = None
    at: int | None = None
    metadata: dict[str, Any] = {}


class Added(Struct, frozen=True):
    """What became of something to remember: it is stored, or `memory` says the same already."""

    memory: Memory
    stored: bool


class Edge(Struct, frozen=True, kw_only=True):
    """How one memory belongs to another; the source `supersedes` or is `part_of` the target."""

    source: str
    target: str
    edge_type: str
    weight: float
    created_at: int


class Recalled(Struct, frozen=True):
    """A memory that a search found: how well it fits, and how near it is by meaning alone."""

    memory: Memory
    score: float
    similarity: float


class MemoryFilter(Struct, frozen=True, kw_only=True):
    """Which memories to list; `before` is the id of the one after which to go on."""

    tenant: str | None = None
    user: str | None = None
    workspace: str | None = None
    memory_type: str | None = None
    current: bool | None = None
    """Only those that hold, or only those that do not."""
    before: str | None = None
    limit: int = 100


class Graph(Struct, frozen=True):
    """Memories and the edges between them."""

    memories: list[Memory]
    edges: list[Edge]
