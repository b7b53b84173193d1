"""A server that speaks the part of Kubo's RPC that publishing uses, with blocks in memory."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from email.message import Message
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any
from urllib.parse import parse_qs, urlsplit

from penstock.apps.recorder.publish.document import cid_of

USUAL = {
    "cid-version": "1",
    "raw-leaves": "true",
    "hash": "sha2-256",
    "chunker": "size-262144",
    "pin": "true",
}


class KuboNode:
    """What a node holds and pins; `lies` has it name another address, `refuses` answer a status."""

    def __init__(self) -> None:
        self.url = ""
        self.blocks: dict[str, bytes] = {}
        self.pinned: set[str] = set()
        self.asked: list[str] = []
        self.lies = False
        self.refuses = 0

    def add(self, asked: dict[str, str], document: bytes) -> dict[str, Any]:
        """Hold a document, and pin it if it is told to."""
        assert asked.items() >= USUAL.items(), asked
        cid = cid_of(document)
        self.blocks[cid] = document
        self.pinned.add(cid)
        told = cid_of(b"another") if self.lies else cid
        return {"Name": "learning.json", "Hash": told, "Size": str(len(document))}

    def pin(self, cid: str) -> dict[str, Any]:
        """Pin a document that it holds."""
        if cid not in self.blocks:
            raise KeyError("block was not found locally")
        self.pinned.add(cid)
        return {"Pins": [cid]}

    def list_pins(self, cid: str) -> dict[str, Any]:
        """How a document is pinned."""
        if cid not in self.pinned:
            raise KeyError(f"path '{cid}' is not pinned")
        return {"Keys": {cid: {"Type": "recursive"}}}

    def unpin(self, cid: str) -> dict[str, Any]:
        """Pin a document no longer."""
        if cid not in self.pinned:
            raise KeyError("not pinned or pinned indirectly")
        self.pinned.remove(cid)
        return {"Pins": [cid]}


@contextmanager
def kubo_node() -> Generator[KuboNode, None, None]:
    """A node that listens on the loopback address."""
    node = KuboNode()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True
        wbufsize = -1

        def do_POST(self) -> None:
            body = _body(self)
            parts = urlsplit(self.path)
            command = parts.path.removeprefix("/api/v0/")
            asked = {name: values[0] for name, values in parse_qs(parts.query).items()}
            node.asked.append(command)
            if node.refuses:
                _answer(self, node.refuses, {"Message": "not now", "Code": 0})
                return
            try:
                _answer(self, 200, _done(node, command, asked, self.headers, body))
            except KeyError as error:
                _answer(self, 500, {"Message": error.args[0], "Code": 0, "Type": "error"})

        def do_GET(self) -> None:
            _answer(self, 405, {"Message": "405 - Method Not Allowed"})

        def log_message(self, format: str, *args: Any) -> None: ...  # noqa: A002

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        node.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield node
        finally:
            server.shutdown()
            thread.join()


def _done(
    node: KuboNode, command: str, asked: dict[str, str], headers: Message, body: bytes
) -> dict[str, Any]:
    match command:
        case "add":
            return node.add(asked, _file(headers, body))
        case "pin/add":
            return node.pin(asked["arg"])
        case "pin/ls":
            return node.list_pins(asked["arg"])
        case "pin/rm":
            return node.unpin(asked["arg"])
        case "version":
            return {"Version": "0.30.0"}
        case _:
            raise KeyError(f"command {command} is not known")


def _file(headers: Message, body: bytes) -> bytes:
    """The file of a form."""
    kind = f"Content-Type: {headers['Content-Type']}\r\n\r\n".encode()
    form = BytesParser(policy=HTTP).parsebytes(kind + body)
    [part] = form.iter_parts()
    return bytes(part.get_content())


def _body(handler: BaseHTTPRequestHandler) -> bytes:
    return handler.rfile.read(int(handler.headers.get("Content-Length", 0)))


def _answer(handler: BaseHTTPRequestHandler, status: int, told: dict[str, Any]) -> None:
    content = json.dumps(told).encode() + b"\n"
    handler.send_response(status)
    handler.send_header("Content-Type", "application/json")
    handler.send_header("Content-Length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)
