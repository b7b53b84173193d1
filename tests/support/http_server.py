"""A server on a port of this machine, in a thread of its own."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI


@contextmanager
def serving(server: FastAPI, port: int = 0) -> Iterator[str]:
    """Serve an application; its address."""
    with socket.create_server(("127.0.0.1", port)) as listening:
        config = uvicorn.Config(
            server, log_level="error", ws="none", timeout_graceful_shutdown=1, access_log=False
        )
        running = uvicorn.Server(config)
        started = threading.Event()
        thread = threading.Thread(target=_run, args=(running, listening, started), daemon=True)
        thread.start()
        started.wait(30)
        try:
            yield f"http://localhost:{listening.getsockname()[1]}"
        finally:
            running.should_exit = True
            thread.join(30)


def _run(running: uvicorn.Server, listening: socket.socket, started: threading.Event) -> None:
    startup = running.startup

    async def tell(sockets: list[socket.socket] | None = None) -> None:
        await startup(sockets)
        started.set()

    running.startup = tell  # type: ignore[method-assign]
    running.run([listening])
