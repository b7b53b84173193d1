"""What a request has to keep to before a route sees it: framing, method, content type."""

from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.routing import Match

from penstock.server.problems import problem

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

PREFIX = "/api/"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
JSON = "application/json"
FRAMED_TWICE = "A request says its length or is sent in chunks, not both: leave one header out."
_PRIVATE = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))


class Envelope:
    """Wraps an application; of what is not below `/api`, only the framing is looked at."""

    def __init__(self, app: "ASGIApp", api: "FastAPI") -> None:
        self._app = app
        self._api = api

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer what needs no route."""
        if scope["type"] == "http" and _is_framed_twice(scope):
            await problem(400, FRAMED_TWICE, headers={"Connection": "close"})(scope, receive, send)
            return
        if scope["type"] != "http" or not _path(scope).startswith(PREFIX):
            await self._app(scope, receive, send)
            return
        send = _private(send)
        answer = self._answer(scope)
        if answer is not None:
            await answer(scope, receive, send)
        elif scope["method"] == "HEAD":
            await self._app({**scope, "method": "GET"}, receive, _without_body(send))
        else:
            await self._app(scope, receive, self._naming_methods(scope, send))

    def _answer(self, scope: "Scope") -> Response | None:
        if b"%00" in scope.get("query_string", b"") or "\0" in scope["path"]:
            return problem(400, "An address cannot hold a NUL character.")
        if scope["method"] == "OPTIONS":
            allowed = self._allowed(scope)
            return Response(status_code=204, headers={"Allow": allowed}) if allowed else None
        return self._refused(Headers(scope=scope))

    def _refused(self, headers: Headers) -> Response | None:
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        if not has_body:
            return None
        kind, _, parameters = headers.get("content-type", "").partition(";")
        charset = parameters.strip().lower().removeprefix("charset=").strip('"')
        if kind.strip().lower() != JSON or charset not in ("", "utf-8"):
            return problem(415, f"Send the body as {JSON}, in UTF-8.")
        return None

    def _allowed(self, scope: "Scope") -> str:
        """The methods of an address, as a header lists them; empty if there is no such one."""
        found = [m for m in METHODS if self._matches({**scope, "method": m})]
        if "GET" in found:
            found.insert(1, "HEAD")
        return ", ".join([*found, "OPTIONS"]) if found else ""

    def _matches(self, scope: "Scope") -> bool:
        return any(route.matches(scope)[0] is Match.FULL for route in self._api.router.routes)

    def _naming_methods(self, scope: "Scope", send: "Send") -> "Send":
        """A route knows its own method only; who asks with a wrong one is told all of them."""

        async def naming(message: "Message") -> None:
            if message["type"] == "http.response.start" and message["status"] == 405:
                MutableHeaders(scope=message)["Allow"] = self._allowed(scope)
            await send(message)

        return naming


def _is_framed_twice(scope: "Scope") -> bool:
    """Whether a proxy may have seen another end of the request than this server sees."""
    names = {name for name, _ in scope["headers"]}
    return names >= {b"content-length", b"transfer-encoding"}


def _path(scope: "Scope") -> str:
    path: str = scope["path"]
    return path.removeprefix(scope.get("root_path", ""))


def _private(send: "Send") -> "Send":
    """Nobody keeps an answer, and no browser takes it for something else."""

    async def private(message: "Message") -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*_PRIVATE, *message["headers"]]
        await send(message)

    return private


def _without_body(send: "Send") -> "Send":
    async def headers_only(message: "Message") -> None:
        if message["type"] == "http.response.start":
            await send(message)
            await send({"type": "http.response.body", "body": b"", "more_body": False})

    return headers_only
