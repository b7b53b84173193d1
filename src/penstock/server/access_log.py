"""An id for every request, which its answer and all its log lines share, and a line about it."""

import logging
import re
import time
from typing import TYPE_CHECKING, Any

import structlog
from starlette.datastructures import MutableHeaders

from penstock.client.lines import detailed
from penstock.model.ids import new_id

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = structlog.get_logger("penstock.server")

HEADER = "X-Request-ID"
PATH_LIMIT = 200

_GIVEN = re.compile(r"[A-Za-z0-9._-]{1,128}")


class AccessLog:
    """Wraps an application; requests are told to who asks for debug lines, or all if `tells`.

    Of an address the query is left out: what somebody searches for may be part of a payload.
    """

    def __init__(self, app: "ASGIApp", *, tells: bool) -> None:
        self._app = app
        self._tell = log.info if tells else getattr(detailed("penstock.server"), "debug", None)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass a request on under its id."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = _id_of(scope)
        scope.setdefault("state", {})["request_id"] = request_id
        status, began = 500, time.perf_counter()

        async def naming(message: "Message") -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                MutableHeaders(scope=message)[HEADER] = request_id
            await send(message)

        with structlog.contextvars.bound_contextvars(request_id=request_id):
            try:
                await self._app(scope, receive, naming)
            finally:
                if self._tell is not None:
                    took = round((time.perf_counter() - began) * 1_000, 1)
                    self._tell("http_request", status=status, duration_ms=took, **_facts(scope))


class Told(logging.Filter):
    """Keeps uvicorn from telling of a mistake once more, with the error's words as they are."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether nobody has told of it yet."""
        return not str(record.msg).startswith("Exception in ASGI application")


def _facts(scope: "Scope") -> dict[str, Any]:
    # As it was sent: percent signs, and nothing that could steer a terminal.
    path: bytes = scope.get("raw_path") or b""
    return {
        "method": scope["method"][:16],
        "path": path.decode("ascii", "replace")[:PATH_LIMIT],
        "caller": scope["state"].get("caller"),
    }


def _id_of(scope: "Scope") -> str:
    """The caller's own, if it is one that a log can hold; else a new one."""
    for name, value in scope["headers"]:
        if name == b"x-request-id":
            text: str = value.decode("latin-1")
            return text if _GIVEN.fullmatch(text) else new_id()
    return new_id()
