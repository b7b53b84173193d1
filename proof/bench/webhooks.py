"""`python -m proof.bench.webhooks`: how many webhooks a second one worker delivers.

The receiver is a process of its own on this machine that reads each request and answers 204. The
time runs from the start of the worker until the last delivery is completed: claim, signature, a
connection for each, the log, the webhook's figures and the settlement included. The limits of the
type (20 at once, 100 a second for each worker) are lifted.
"""

import argparse
import asyncio
import multiprocessing
import os
import sys
import tempfile
import time
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from penstock import Penstock, Settings
from penstock.apps.agents import options
from penstock.worker.worker import Worker
from proof.bench.report import line, print_figures_only

TARGET = "≥ 500 deliveries/s"
AT_ONCE = 64
ANSWER = b"HTTP/1.1 204 No Content\r\n\r\n"


class Receiver(asyncio.Protocol):
    """Answers a request once all of it is there."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to listen."""
        self._transport: Any = transport
        self._got = b""

    def data_received(self, data: bytes) -> None:
        """Answer, and hang up."""
        self._got += data
        head, found, body = self._got.partition(b"\r\n\r\n")
        if found:
            size = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
            if len(body) >= int(size):
                self._transport.write(ANSWER)
                self._transport.close()


def receive(told: Connection) -> None:
    """Listen until the process is ended."""

    async def listen() -> None:
        server = await asyncio.get_running_loop().create_server(Receiver, "127.0.0.1", 0)
        told.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(listen())


async def measure(url: str, folder: Path, port: int, count: int, webhooks: int) -> float:
    """Deliver so many messages to so many webhooks; how many a second."""
    own = {"folder": str(folder), "schedules": False, "webhooks": {"allow": ["127.0.0.0/8"]}}
    settings = Settings(extension={"agents": own})
    async with Penstock(url, extensions=["agents"], settings=settings) as app:
        tenant = f"with {webhooks}"
        for _ in range(webhooks):
            await app.agents.webhooks.add(f"http://127.0.0.1:{port}/", topics=["*"], tenant=tenant)
        for n in range(count // webhooks):
            await app.agents.webhooks.publish("order.paid", {"order": n}, tenant=tenant)
        worker = Worker(app, types=["webhook-dispatch"], concurrency=AT_ONCE, burst=True)
        began = time.perf_counter()
        await worker.run()
        took = time.perf_counter() - began
        done = await app.agents.webhooks.list(tenant=tenant)
        assert sum(one.success_count for one in done) == count, "not all were delivered"
    return count / took


def main() -> None:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=5_000)
    parser.add_argument("--url", default="", help="a PostgreSQL in place of a SQLite file")
    given = parser.parse_args()
    print_figures_only()
    name = "webhook-dispatch"
    lifted = replace(options.OPTIONS[name], per_worker=AT_ONCE, rate_per_worker=None)
    options.OPTIONS[name] = lifted
    ours, theirs = multiprocessing.Pipe()
    receiver = multiprocessing.Process(target=receive, args=(theirs,), daemon=True)
    receiver.start()
    port = ours.recv()
    try:
        with tempfile.TemporaryDirectory() as folder:
            url = given.url or f"sqlite:///{folder}/bench.db"
            for row in (("", "measured", "target"), ("---", "---", "---")):
                sys.stdout.write(f"{line(row)}\n")
            for webhooks in (1, 50):
                path = Path(folder)
                rate = asyncio.run(measure(url, path / "agents", port, given.count, webhooks))
                what = f"webhooks delivered, to {webhooks} endpoint{'s' if webhooks > 1 else ''}"
                sys.stdout.write(line((what, f"{rate:,.0f} /s", TARGET)) + "\n")
                if not given.url:
                    for file in path.glob("bench.db*"):
                        os.unlink(file)
    finally:
        receiver.terminate()


if __name__ == "__main__":
    main()
