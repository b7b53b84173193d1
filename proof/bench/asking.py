"""The application whose consumer asks a model about every event, before it derives its row."""

import asyncio
import os
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from functools import cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import httpx

from penstock.app.penstock import Penstock
from penstock.events.enrichment import enrich
from penstock.events.event import Event
from proof.tally import Tally, tally

MODEL = "PENSTOCK_BENCH_MODEL"
"""The variable with the address of the model."""
THINKING_SECONDS = 0.05


class Asking(Tally):
    """Has a model say something about each event of a batch, of all at once."""

    async def prepare(self, events: Sequence[Event]) -> Sequence[Event]:  # type: ignore[override]
        """Ask; what is not answered is left out, as consumers do it."""
        await asyncio.gather(*(enrich("model", self._ask, event) for event in events))
        return events

    async def _ask(self, event: Event) -> str:
        answer = await self._client.post(os.environ[MODEL], content=event.event_id)
        return answer.raise_for_status().text

    @cached_property
    def _client(self) -> httpx.AsyncClient:
        return httpx.AsyncClient()


@contextmanager
def model() -> Generator[str, None, None]:
    """A service that answers after so long, as a small model would; its address."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            asked = self.rfile.read(int(self.headers["Content-Length"]))
            time.sleep(THINKING_SECONDS)
            self.send_response(200)
            self.send_header("Content-Length", str(len(asked)))
            self.end_headers()
            self.wfile.write(asked)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Nobody reads it."""

    class Service(ThreadingHTTPServer):
        request_queue_size = 128  # a batch comes at once

    with Service(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/"
        finally:
            server.shutdown()


app = Penstock(extensions=[tally])
app.consumer.add(Asking("asking").consumer(batch=50))
