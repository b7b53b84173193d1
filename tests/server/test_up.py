"""Everything at once, and how it ends."""

import asyncio
import socket

import pytest

from penstock.model.errors import InvalidOption
from penstock.server import up
from penstock.server.serve import Bind, ServerSpec
from penstock.worker.process import WorkerSpec


async def test_the_server_has_ended_before_workers_that_cannot_start_are_complained_about(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended: list[bool] = []

    class Kept:
        """A server that takes a moment to end."""

        def __init__(self, *_: object) -> None:
            self._stopping = asyncio.Event()

        async def run(self) -> int:
            await self._stopping.wait()
            for _ in range(10):
                await asyncio.sleep(0)
            ended.append(True)
            return 0

        def stop(self) -> None:
            self._stopping.set()

    monkeypatch.setattr(up, "KeptServer", Kept)
    spec = ServerSpec(bind=Bind(host="127.0.0.1", port=0))
    with socket.socket() as taken:
        everything = up.Up(spec, taken, WorkerSpec(target="none.here:app"), 1)
        with pytest.raises(InvalidOption, match="importable"):
            await everything.run()
    assert ended
