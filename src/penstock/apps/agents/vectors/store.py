"""Vector stores: what every one of them offers, whatever searches behind it.

Rows of `agents_vectors` are the truth, written in the caller's own transaction; an index is derived
from them and can be built anew at any time. Each (namespace, tenant) has an index of its own, so
that nobody's search ever meets the vectors of another tenant.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct

from penstock.model.errors import PenstockError

if TYPE_CHECKING:
    import numpy
    from numpy.typing import NDArray

    from penstock.app.penstock import Penstock

    Vector = NDArray[numpy.float32]
    """One vector, (dimensions,), of length 1."""
    Vectors = NDArray[numpy.float32]
    """Several, (n, dimensions)."""

MEMORIES = "memories"
TRAJECTORIES = "trajectories"
PATTERNS = "patterns"


class Entry(Struct, frozen=True, kw_only=True):
    """A vector to be kept.

    `text` is what was embedded: without it, another model cannot embed it again. `model` is that
    of the settings' embedder, unless it says otherwise.
    """

    id: str
    vector: Any
    tenant_id: str = ""
    user_id: str | None = None
    metadata: dict[str, Any] = {}
    text: str | None = None
    model: str = ""


class Hit(Struct, frozen=True, kw_only=True):
    """What was found: `score` is the cosine with what was sought, 1 for the same."""

    id: str
    score: float
    tenant_id: str = ""
    user_id: str | None = None
    metadata: dict[str, Any] = {}


class IndexInfo(Struct, frozen=True, kw_only=True):
    """How the index of a namespace is for one tenant.

    `deleted` counts vectors that are gone but not yet compacted; `recall` is that of the last
    measurement against an exact search.
    """

    namespace: str
    tenant_id: str
    model: str
    dimensions: int
    count: int
    deleted: int
    revision: int
    generation: int
    built_at: int | None = None
    recall: float | None = None
    measured_at: int | None = None


class ModelChanged(PenstockError):
    """A text that is sought by another model than the vectors are of."""

    def __init__(self, namespace: str, model: str, wanted: str) -> None:
        self.namespace = namespace
        self.model = model
        self.wanted = wanted
        super().__init__(
            f"The vectors of {namespace!r} are of model {model} and the embedder is {wanted}; "
            "run embedding-reindex, and name the former one under "
            "[penstock.agents.former_embedder] until it is done."
        )


class BadVector(PenstockError):
    """Something that is not a vector of length 1."""

    def __init__(self, vector: str, problem: str) -> None:
        self.vector = vector
        self.problem = problem
        super().__init__(f"Vector {vector!r} cannot be kept: {problem}.")


Keep = Callable[[Hit], bool]
"""Says whether a hit counts; a search goes on until there are enough that do."""


class VectorStore(Protocol):
    """Keeps vectors and finds the nearest ones.

    `put` and `remove` take the `tx` of `app.transact`, so that a row and its vector are one commit.
    A search sees everything that was committed before it began. `tenant=None` is for operators: it
    looks at all of them.
    """

    def put(self, tx: Any, namespace: str, entries: Sequence[Entry]) -> None:
        """Keep vectors; one with the id of another of its tenant replaces it."""
        ...

    def remove(self, tx: Any, namespace: str, ids: Sequence[str], *, tenant: str) -> int:
        """Remove vectors; return how many there were."""
        ...

    async def search(
        self,
        namespace: str,
        vector: "Vector",
        k: int = 10,
        *,
        tenant: str | None,
        user: str | None = None,
        keep: Keep | None = None,
    ) -> list[Hit]:
        """Return the nearest vectors, the best first.

        With `user`, those of this user and those of nobody in particular.
        """
        ...

    async def search_text(
        self,
        namespace: str,
        text: str,
        k: int = 10,
        *,
        tenant: str | None,
        user: str | None = None,
        keep: Keep | None = None,
    ) -> list[Hit]:
        """Return what is nearest to a text, embedded by the model that the vectors are of."""
        ...

    async def exact(
        self,
        namespace: str,
        vector: "Vector",
        k: int = 10,
        *,
        tenant: str | None,
        user: str | None = None,
        keep: Keep | None = None,
    ) -> list[Hit]:
        """Return what `search` should have found: every vector is compared."""
        ...

    async def get(self, namespace: str, ids: Sequence[str], *, tenant: str) -> dict[str, "Vector"]:
        """Return vectors by their ids; those that are not there are left out."""
        ...

    async def neighbours(
        self, namespace: str, vectors: "Vectors", k: int = 10, *, tenant: str
    ) -> list[list[tuple[str, float]]]:
        """Return ids and scores of the nearest ones of each vector, for many at once."""
        ...

    async def indexes(
        self, namespace: str | None = None, tenant: str | None = None
    ) -> list[IndexInfo]:
        """List the indexes there are."""
        ...

    async def catch_up(self, namespace: str, tenant: str) -> int:
        """Have the index know every vector, and keep it; return how many it holds."""
        ...

    async def keep_up(self, namespace: str, tenant: str) -> None:
        """Do for the next search, in some other process, what would take it long."""
        ...

    async def optimise(self, namespace: str, tenant: str, threshold: float = 0.8) -> bool:
        """Compact the index if a greater share than 1 - threshold is deleted; tell whether."""
        ...

    async def rebuild(self, namespace: str, tenant: str) -> int:
        """Build the index anew from the rows; return how many vectors it holds."""
        ...

    async def recall(
        self, namespace: str, tenant: str, *, sample: int = 100, k: int = 10
    ) -> float | None:
        """Measure which share of an exact search's hits the index finds; None without vectors."""
        ...

    async def forget(self, *, tenant: str | None = None, person: str | None = None) -> int:
        """Leave nothing of erased rows in any index or file; return how many were changed."""
        ...

    async def close(self) -> None:
        """Write down what is worth keeping, and let go of memory."""
        ...


def vectors_of(app: "Penstock") -> VectorStore:
    """Return the vector store that the settings name; an application has one."""
    found: VectorStore = app.extensions.namespace("agents").vectors
    return found
