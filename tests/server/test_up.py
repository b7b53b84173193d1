"""Everything at once, and how it ends."""

import asyncio
import socket

import pytest

from penstock.model.errors import InvalidOption
from penstock.model.store_errors import StoreUnavailable
from penstock.server import process, up
from penstock.server.serve import Bind, ServerSpec
from penstock.worker.process import WorkerSpec
from penstock.worker.respawn import BAD_SPEC, REPLACE_ME, WORTH_ANOTHER_TRY


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


@pytest.mark.parametrize(
    ("error", "reloads", "code"),
    [
        (SyntaxError("half"), True, REPLACE_ME),
        (InvalidOption("app", "x", "y"), True, REPLACE_ME),
        (InvalidOption("app", "x", "y"), False, BAD_SPEC),
        (StoreUnavailable("redis://x", "gone"), True, WORTH_ANOTHER_TRY),
    ],
)
def test_a_server_waits_for_the_repair_of_its_code_and_of_nothing_else(
    monkeypatch: pytest.MonkeyPatch, error: Exception, reloads: bool, code: int
) -> None:
    async def fail(*_: object) -> int:
        raise error

    monkeypatch.setattr(process, "configure_logs", lambda **_: None)
    monkeypatch.setattr(process, "serve", fail)
    monkeypatch.setattr(process, "wait_for_repair", lambda *_: REPLACE_ME)
    spec = ServerSpec(bind=Bind(host="127.0.0.1", port=0), target="shop:app", reload=reloads)
    with socket.socket() as taken:
        assert process.run(spec, taken) == code


async def test_a_server_that_is_stopped_while_it_reloads_has_ended_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def reloads(kept: up.KeptServer) -> int:
        kept.stop()
        return REPLACE_ME

    monkeypatch.setattr(up.KeptServer, "_run_child", reloads)
    with socket.socket() as taken:
        assert (
            await up.KeptServer(ServerSpec(bind=Bind(host="127.0.0.1", port=0)), taken).run() == 0
        )
