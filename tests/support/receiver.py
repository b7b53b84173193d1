"""A service on this machine that people's notices are sent to."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Queue
from threading import Thread
from typing import Any

import pytest

APPRISE = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
"""For what apprise imports when it first looks for a service."""


class Receiver:
    """What was sent to it; while `refuses` is set it answers with that status."""

    def __init__(self) -> None:
        self.got: Queue[dict[str, Any]] = Queue()
        self.refuses = 0
        self.port = 0

    @property
    def route(self) -> str:
        """Its URL in apprise's words."""
        return f"json://127.0.0.1:{self.port}/alerts"

    def titles(self) -> list[str]:
        """What came in, in order."""
        return [each["title"] for each in list(self.got.queue)]


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver that listens on the loopback address."""
    receiver = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if not receiver.refuses:
                receiver.got.put(json.loads(body))
            self.send_response(receiver.refuses or 204)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        receiver.port = server.server_port
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield receiver
        finally:
            server.shutdown()
            thread.join()
