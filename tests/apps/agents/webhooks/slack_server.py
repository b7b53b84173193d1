"""A server that behaves like Slack's Web API, as far as reading channels goes.

Messages come from the newest to the oldest, in pages with a cursor; a request without the right
token is answered 200 with `invalid_auth`, and too many of them 429 with Retry-After.
"""

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

TOKEN = "-".join(("xoxb", "no", "real", "one"))


class Slack:
    """Channels with their messages, and how many requests are taken before it asks for patience."""

    def __init__(self) -> None:
        self.channels: dict[str, list[dict[str, Any]]] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []
        self.patience: int | None = None
        self.retry_after = "30"
        self.breaks: list[int] = []
        self.forgets_cursors = False
        self.url = ""
        self.token = Path()
        """Where whoever reads it finds the token."""

    def say(self, channel: str, ts: str, text: str, user: str = "U1", **more: Any) -> None:
        """Have somebody write a message."""
        self.channels.setdefault(channel, []).append(
            {"type": "message", "ts": ts, "text": text, "user": user, **more}
        )

    def answer(
        self, method: str, given: dict[str, str], token: str
    ) -> tuple[int, dict[str, Any], dict[str, str]]:
        """Answer a request with a status, a document and headers."""
        self.asked.append((method, given))
        if self.breaks:
            return self.breaks.pop(0), {}, {}
        if self.patience is not None:
            self.patience -= 1
            if self.patience < 0:
                refused = {"ok": False, "error": "ratelimited"}
                return 429, refused, {"Retry-After": self.retry_after}
        if token != TOKEN:
            return 200, {"ok": False, "error": "invalid_auth"}, {}
        if given.get("channel") not in self.channels:
            return 200, {"ok": False, "error": "channel_not_found"}, {}
        said = self.channels[given["channel"]]
        if method == "conversations.replies":
            found = [one for one in said if given["ts"] in (one["ts"], one.get("thread_ts"))]
            found.sort(key=lambda one: one["ts"])
        else:
            after = given.get("oldest", "0")
            found = [
                one
                for one in said
                if float(one["ts"]) > float(after) and one.get("thread_ts") in (None, one["ts"])
            ]
            found.sort(key=lambda one: one["ts"], reverse=True)
        return 200, self._page(found, given), {}

    def _page(self, found: list[dict[str, Any]], given: dict[str, str]) -> dict[str, Any]:
        begin = 0
        if given.get("cursor"):
            if self.forgets_cursors:
                self.forgets_cursors = False
                return {"ok": False, "error": "invalid_cursor"}
            begin = int(base64.b64decode(given["cursor"]).decode().partition(":")[2])
        end = begin + int(given.get("limit", "100"))
        more = end < len(found)
        cursor = base64.b64encode(f"next:{end}".encode()).decode() if more else ""
        return {
            "ok": True,
            "messages": found[begin:end],
            "has_more": more,
            "response_metadata": {"next_cursor": cursor},
        }

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take the requests of one connection."""
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                line, *rest = head.decode().rstrip("\r\n").split("\r\n")
                headers = {
                    name.lower(): value for name, value in (each.split(": ", 1) for each in rest)
                }
                url = urlsplit(line.split(" ")[1])
                token = headers.get("authorization", "").removeprefix("Bearer ")
                method = url.path.removeprefix("/api/")
                status, document, told = self.answer(method, dict(parse_qsl(url.query)), token)
                body = json.dumps(document).encode()
                more = "".join(f"{name}: {value}\r\n" for name, value in told.items())
                writer.write(
                    f"HTTP/1.1 {status} So\r\nContent-Type: application/json\r\n"
                    f"Content-Length: {len(body)}\r\n{more}\r\n".encode()
                    + body
                )
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def slack_server() -> AsyncIterator[Slack]:
    """One that listens on the loopback address."""
    slack = Slack()
    server = await asyncio.start_server(slack.handle, "127.0.0.1", 0)
    slack.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/api"
    try:
        yield slack
    finally:
        server.close()
