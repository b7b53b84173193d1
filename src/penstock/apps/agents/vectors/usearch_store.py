"""Vectors searched by usearch: a graph for each index in memory, and as a file in the folder.

Whoever searches first has its graph catch up with the rows. Several processes share the file: each
has a graph of its own, one of them at a time writes, and nobody needs to: what a file lacks, or a
file that is not there, is taken from the rows.
"""

import asyncio
import os
from collections import OrderedDict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from penstock.app.sync import SharedLock
from penstock.apps.agents.files import find_folder
from penstock.apps.agents.vectors.graph import (
    About,
    Graph,
    Row,
    Seen,
    files_in,
    path_of,
    read_about,
    remove,
    try_lock,
)
from penstock.apps.agents.vectors.rows import PAGE, Index, VectorRows, json

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.apps.agents.extension import VectorSettings
    from penstock.apps.agents.vectors.store import Vector, Vectors

WORTH_SAVING = 1_000
"""So many changes, or a tenth of the graph if that is more, are written to the file."""
MOST_GRAPHS = 256
MOST_VECTORS = 4_000_000
"""Graphs that were not used for long are let go beyond these."""

LOOK_AGAIN_SECONDS = 0.01

Key = tuple[str, str, str]


class UsearchStore(VectorRows):
    """`VectorStore` by usearch."""

    def __init__(self, app: "Penstock", settings: "VectorSettings") -> None:
        super().__init__(app)
        self.settings = settings
        self.graphs: OrderedDict[Key, Graph] = OrderedDict()
        self._locks: dict[Key, SharedLock] = {}

    async def near(self, index: Index, vector: "Vector", most: int) -> list[int]:
        """Return the numbers of the nearest vectors."""
        graph = await self._graph(index)
        if graph.is_busy:
            return await asyncio.to_thread(graph.near, vector, most)
        return graph.near(vector, most)

    async def near_each(
        self, index: Index, vectors: "Vectors", most: int, *, quickly: bool = False
    ) -> list[list[tuple[int, float]]]:
        """Return numbers and scores of the nearest ones of each vector."""
        graph = await self._graph(index)
        return await asyncio.to_thread(graph.near_each, vectors, most, quickly=quickly)

    async def catch_up(self, namespace: str, tenant: str) -> int:
        """Have the index know every vector, and keep it; return how many it holds."""
        index = await self.find(namespace, tenant)
        return 0 if index is None else len(await self._graph(index))

    async def prepare(self, index: Index) -> None:
        """Make an index ready that is about to be switched to."""
        await self._graph(index)

    async def rebuild(self, namespace: str, tenant: str) -> int:
        """Build the index anew from the rows; return how many vectors it holds.

        It begins a new generation, which tells other processes to let go of what they have.
        """
        index = await self.find(namespace, tenant)
        if index is None:
            return 0
        async with self._alone(index):
            following = msgspec.structs.replace(index, generation=index.generation + 1)
            graph = Graph(following, self.settings)
            await self._read(graph)
            bindings = {**index.where, "generation": index.generation}

            def work(tx: Any) -> bool:
                if not tx.agents.run("begin_generation", {**bindings, "now": tx.now}):
                    return False
                tx.agents.run("drop_buried", {**index.where, "revision": graph.revision})
                return True

            if await self._app.transact(work):
                await self.keep(graph)
                self.graphs[_key(index)] = graph
        return len(graph)

    async def keep_up(self, namespace: str, tenant: str) -> None:
        """Write the file, if it lacks so much that a search would be held up."""
        index, folder = await self.find(namespace, tenant), find_folder(self._app)
        if index is None or folder is None:
            return
        about = read_about(path_of(folder, index))
        seen = 0 if about is None or about.generation != index.generation else about.revision
        if index.revision - seen >= max(WORTH_SAVING, (about.count if about else 0) // 10):
            await self._graph(index)

    async def discard_former(self, index: Index) -> None:
        """Leave nothing of former models of an index outside of the rows."""
        for key in [key for key in self.graphs if key[:2] == _key(index)[:2]]:
            if key != _key(index):
                del self.graphs[key]
        for path, about in self._files():
            if (about.namespace, about.tenant_id) == _key(index)[:2] and about.model != index.model:
                await self._delete(path, about)

    async def forget(self, *, tenant: str | None = None, person: str | None = None) -> int:
        """Leave nothing of erased rows in any index or file; return how many were changed."""
        for key, graph in list(self.graphs.items()):
            if tenant in (None, graph.index.tenant_id) and await self._holds_erased(graph):
                del self.graphs[key]
        changed = 0
        for path, about in self._files():
            if tenant not in (None, about.tenant_id):
                continue
            index = await self.find(about.namespace, about.tenant_id)
            if index is None or index.model != about.model:
                await self._delete(path, about)
            elif await self._file_holds_erased(path, index):
                await self.rebuild(index.namespace, index.tenant_id)
            else:
                continue
            changed += 1
        return changed

    def _files(self) -> list[tuple[Path, About]]:
        """The files that say what they are; others are deleted."""
        folder = find_folder(self._app)
        found = []
        for path in [] if folder is None else files_in(folder):
            about = read_about(path)
            if about is None:
                remove(path)
            else:
                found.append((path, about))
        return found

    async def _delete(self, path: Path, about: About) -> None:
        names = Index.__struct_fields__
        gone = Index(**{name: getattr(about, name) for name in names})
        async with self._alone(gone):
            remove(path)

    async def _file_holds_erased(self, path: Path, index: Index) -> bool:
        graph = Graph(index, self.settings)
        read = await asyncio.to_thread(graph.load, path)
        return not read or await self._holds_erased(graph)

    async def _holds_erased(self, graph: Graph) -> bool:
        rows = await self.ask("all_ids", graph.index.where)
        return bool(graph.numbers - {int(number) for number, _ in rows})

    async def close(self) -> None:
        """Let go of memory; what was worth keeping is in files already."""
        self.graphs.clear()

    async def _graph(self, index: Index) -> Graph:
        """Return the graph of an index, which has seen all that the index has."""
        key = _key(index)
        graph = self.graphs.get(key)
        if graph is not None and _is_of(graph, index) and graph.revision >= index.revision:
            self.graphs.move_to_end(key)
            return graph
        async with self._locks.setdefault(key, SharedLock()):
            graph = self.graphs.get(key)
            if graph is None or not _is_of(graph, index):
                graph = await self._opened(index)
                self.graphs[key] = graph
                self._let_go()
            if graph.revision < index.revision:
                graph.index = index
                await self._read(graph)
                await self._save(graph)
        return graph

    async def _opened(self, index: Index) -> Graph:
        """Read the file, or build the graph while nobody else does.

        A file that is not believed is replaced, however little is in it.
        """
        graph, folder = await self._loaded(index), find_folder(self._app)
        if folder is None or not self._is_worth(graph, path_of(folder, index)):
            return graph
        async with self._alone(index):
            graph = await self._loaded(index)
            if self._is_worth(graph, path_of(folder, index)):
                await self._read(graph)
                await self.keep(graph)
        return graph

    def _is_worth(self, graph: Graph, path: Path) -> bool:
        """Tell whether a graph is to be built, and written, before it is searched."""
        refused = graph.revision == 0 and path.exists()
        return refused or graph.index.revision - graph.revision >= WORTH_SAVING

    async def _loaded(self, index: Index) -> Graph:
        """Return what the file holds, if it is one of these rows; else a graph that is empty."""
        folder = find_folder(self._app)
        graph = Graph(index, self.settings)
        if folder is None or not await asyncio.to_thread(graph.load, path_of(folder, index)):
            return Graph(index, self.settings)
        numbers = json.encode([seen.number for seen in graph.last]).decode()
        bindings = {**index.where, "numbers": numbers}
        rows = await self.ask("vectors_seen", bindings)
        known = graph.belongs_to([Seen(*map(int, row)) for row in rows])
        return graph if known else Graph(index, self.settings)

    async def _read(self, graph: Graph) -> None:
        """Have a graph take in every row that it has not seen."""
        where = graph.index.where
        while True:
            bindings = {**where, "after": graph.revision, "most": PAGE}
            rows = await self.ask("vectors_after", bindings)
            found = [Row(*row) for row in rows]
            if len(found) > 10:
                await asyncio.to_thread(graph.take_in, found)
            else:
                graph.take_in(found)
            if len(found) < PAGE:
                break
        # Numbers that were taken by writes which changed nothing, or by another model, are no rows.
        graph.revision = max(graph.revision, graph.index.revision)

    async def _save(self, graph: Graph) -> None:
        """Write the file, if there is much in the graph that it lacks."""
        if graph.revision - graph.saved < max(WORTH_SAVING, len(graph) // 10):
            return
        folder = find_folder(self._app)
        if folder is not None:
            async with self._alone(graph.index):
                there = read_about(path_of(folder, graph.index))
                if there is None or there.revision < graph.revision:
                    await self.keep(graph)

    async def keep(self, graph: Graph) -> None:
        """Write the file while nobody else does, unless the index is another one by now."""
        index, folder = graph.index, find_folder(self._app)
        if folder is None:
            return
        now = await self.find(index.namespace, index.tenant_id)
        following = now is not None and now.model != index.model
        if now is None or not (following or now.generation == index.generation):
            return
        await asyncio.to_thread(graph.save, path_of(folder, index))

    @asynccontextmanager
    async def _alone(self, index: Index) -> AsyncGenerator[None, None]:
        """Keep out other processes that would write the file of the same index."""
        folder = find_folder(self._app)
        if folder is None:
            yield
            return
        path = path_of(folder, index)
        while (held := try_lock(path)) is None:  # noqa: ASYNC110  # another process has it
            await asyncio.sleep(LOOK_AGAIN_SECONDS)
        try:
            yield
        finally:
            os.close(held)

    def _let_go(self) -> None:
        graphs = self.graphs
        while len(graphs) > 1 and (
            len(graphs) > MOST_GRAPHS or sum(map(len, graphs.values())) > MOST_VECTORS
        ):
            graphs.popitem(last=False)


def _key(index: Index) -> Key:
    return index.namespace, index.tenant_id, index.model


def _is_of(graph: Graph, index: Index) -> bool:
    """Tell whether a graph is of the same generation."""
    mine = graph.index
    return (mine.generation, mine.dimensions) == (index.generation, index.dimensions)
