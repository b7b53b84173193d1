"""A Valkey cluster of one's own."""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Self

from proof.servers.ports import free_port
from proof.servers.process import START_SECONDS, ServerDidNotStart, await_condition
from proof.servers.redis import RedisServer

SLOTS = 16_384


class ValkeyCluster:
    """A few Valkey nodes that share the slots between them, without replicas.

    `with ValkeyCluster() as cluster: url = cluster.url`
    """

    def __init__(
        self,
        directory: Path | None = None,
        nodes: int = 3,
        options: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self.nodes = [
            RedisServer(directory / f"node-{number}" if directory else None, options=_node(options))
            for number in range(1, nodes + 1)
        ]

    @property
    def url(self) -> str:
        """One node, from which a client learns of the others."""
        return self.nodes[0].url

    @property
    def pids(self) -> list[int]:
        """The processes of the nodes."""
        return [node.pid for node in self.nodes]

    def start(self) -> None:
        """Start the nodes, on new data with the slots shared out, and wait for their agreement."""
        fresh = not any(node.data.exists() for node in self.nodes)
        for node in self.nodes:
            node.start()
        if fresh:
            self._share_out()
        try:
            await_condition(self._agreed, START_SECONDS)
        except TimeoutError:
            raise ServerDidNotStart("A cluster of Valkey", self.nodes[0].log) from None

    def stop(self) -> None:
        """Stop all nodes in good order."""
        for node in self.nodes:
            node.stop()

    def kill(self) -> None:
        """Kill all nodes."""
        for node in self.nodes:
            node.kill()

    def restart(self) -> None:
        """Stop all nodes, then start them on the same data and the same addresses."""
        self.stop()
        self.start()

    def close(self) -> None:
        """Kill all nodes and remove the directories they made for themselves."""
        for node in self.nodes:
            node.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _share_out(self) -> None:
        first = self.nodes[0]
        borders = [SLOTS * number // len(self.nodes) for number in range(len(self.nodes) + 1)]
        for number, node in enumerate(self.nodes):
            # Epochs of their own, or the nodes argue about it first.
            node.ask("CLUSTER", "SET-CONFIG-EPOCH", str(number + 1))
            low, high = borders[number], borders[number + 1] - 1
            node.ask("CLUSTER", "ADDSLOTSRANGE", str(low), str(high))
            bus = first.options["cluster-port"]
            if node is not first:
                node.ask("CLUSTER", "MEET", "127.0.0.1", str(first.port), bus)

    def _agreed(self) -> bool:
        return all(self._ready(node) for node in self.nodes)

    def _ready(self, node: RedisServer) -> bool:
        state = node.ask("CLUSTER", "INFO").decode().split()
        return {"cluster_state:ok", f"cluster_size:{len(self.nodes)}"} <= set(state)


def _node(options: Mapping[str, str]) -> dict[str, str]:
    return {
        "cluster-enabled": "yes",
        "cluster-port": str(free_port()),
        "cluster-node-timeout": "2000",
        **options,
    }
