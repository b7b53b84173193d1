"""What a request meets before a route sees it: an id, its framing, its method, and the clock."""

import logging
import re
import time
from bisect import bisect_left
from collections import Counter, deque
from typing import TYPE_CHECKING, Any

import structlog
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.routing import Match

from penstock.app.job_log import detailed
from penstock.app.tracing import TRACEPARENT, came_with, packed
from penstock.model.histogram import percentile, step_of
from penstock.model.ids import new_id
from penstock.server.problems import problem
from penstock.store.contract.metrics import FINE_MS, HOUR_MS

if TYPE_CHECKING:
    from fastapi import FastAPI
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


BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
UNMATCHED = "unmatched"
SUBMISSION = ("POST", "/api/jobs")

_TRACED = frozenset({b"traceparent", b"tracestate", b"baggage"})
_TRACEPARENT = re.compile(r"00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")


class Timing:
    """Durations in buckets, as Prometheus counts them."""

    __slots__ = ("buckets", "seconds")

    def __init__(self) -> None:
        self.buckets = [0] * (len(BUCKETS) + 1)
        self.seconds = 0.0

    def add(self, seconds: float) -> None:
        """Count one."""
        self.buckets[bisect_left(BUCKETS, seconds)] += 1
        self.seconds += seconds


class Recent:
    """Durations of the last hour, in steps of ten seconds."""

    def __init__(self) -> None:
        self._steps: deque[tuple[int, Counter[int]]] = deque(maxlen=HOUR_MS // FINE_MS)

    def add(self, seconds: float, now: float) -> None:
        """Count one that ended just now."""
        step = int(now * 1_000) // FINE_MS
        if not self._steps or self._steps[-1][0] != step:
            self._steps.append((step, Counter()))
        self._steps[-1][1][step_of(seconds * 1_000)] += 1

    def percentile(self, fraction: float, span_ms: int, now: float) -> float | None:
        """The milliseconds below which that fraction of the durations in a window lie."""
        first = (int(now * 1_000) - span_ms) // FINE_MS
        counts: Counter[int] = Counter()
        for step, found in self._steps:
            if step > first:
                counts.update(found)
        return percentile(counts, fraction)


class Traffic:
    """Counts requests by method, route and status: as many figures as there are routes."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.timings: dict[tuple[str, str], Timing] = {}
        self._submissions = Recent()

    def note(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request was answered."""
        self.requests[method, route, status] += 1
        self.timings.setdefault((method, route), Timing()).add(seconds)
        if (method, route) == SUBMISSION and status < 300:
            self._submissions.add(seconds, time.monotonic())

    def submission_p95_ms(self, span_ms: int) -> float | None:
        """How long enqueueing took over HTTP, seen over at most the last hour."""
        return self._submissions.percentile(0.95, span_ms, time.monotonic())


class Measured:
    """Wraps an application and notes every request, until its answer begins."""

    def __init__(self, app: "ASGIApp", traffic: Traffic) -> None:
        self._app = app
        self._traffic = traffic

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Pass a request on, and take the time."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        status, ended = 500, 0.0

        async def noting(message: "Message") -> None:
            nonlocal status, ended
            await send(message)
            if message["type"] == "http.response.start":
                status = message["status"]
            ended = ended or time.perf_counter()

        with came_with(_trace(scope)):
            try:
                await self._app(scope, receive, noting)
            finally:
                method = scope["method"] if scope["method"] in METHODS else "other"
                took = (ended or time.perf_counter()) - began
                self._traffic.note(method, _route(scope), status, took)


def _route(scope: "Scope") -> str:
    """The address as it was declared: one name for the pages of all jobs."""
    route = scope.get("route")
    path: str = getattr(route, "path_format", None) or getattr(route, "path", "") or UNMATCHED
    return path


def _trace(scope: "Scope") -> str | None:
    """What a caller says of its trace, its state and its baggage."""
    found: dict[str, str] = {}
    for name, value in scope["headers"]:
        if name in _TRACED:
            said = [found.get(name.decode(), ""), value.decode("latin-1")]
            found[name.decode()] = ",".join(filter(None, said))
    return packed(found) if _TRACEPARENT.fullmatch(found.get(TRACEPARENT, "")) else None


PREFIX = "/api/"
ANSWERED = ("GET", "POST", "PUT", "PATCH", "DELETE")
JSON = "application/json"
_JSON = (JSON,)
FRAMED_TWICE = "A request says its length or is sent in chunks, not both: leave one header out."
_PRIVATE = ((b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff"))


class Envelope:
    """Wraps an application; of what is not below `/api`, framing and HEAD are looked at."""

    def __init__(self, app: "ASGIApp", api: "FastAPI") -> None:
        self._app = app
        self._api = api
        self._others: list[Any] = [r for r in api.routes if getattr(r, "media", _JSON) != _JSON]

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer what needs no route."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if _is_framed_twice(scope):
            await problem(400, FRAMED_TWICE, headers={"Connection": "close"})(scope, receive, send)
            return
        answer = None
        if _path(scope).startswith(PREFIX):
            send = _private(send)
            answer = self._answer(scope)
            send = send if scope["method"] == "HEAD" else self._naming_methods(scope, send)
        if answer is not None:
            await answer(scope, receive, send)
        elif scope["method"] == "HEAD":
            await self._app({**scope, "method": "GET"}, receive, _without_body(send))
        else:
            await self._app(scope, receive, send)

    def _answer(self, scope: "Scope") -> Response | None:
        if b"%00" in scope.get("query_string", b"") or "\0" in scope["path"]:
            return problem(400, "An address cannot hold a NUL character.")
        if scope["method"] == "OPTIONS":
            allowed = self._allowed(scope)
            return Response(status_code=204, headers={"Allow": allowed}) if allowed else None
        return self._refused(scope, Headers(scope=scope))

    def _refused(self, scope: "Scope", headers: Headers) -> Response | None:
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        if not has_body:
            return None
        kind, _, parameters = headers.get("content-type", "").partition(";")
        charset = parameters.strip().lower().removeprefix("charset=").strip('"')
        wanted = self._media(scope)
        if kind.strip().lower() not in wanted or charset not in ("", "utf-8"):
            return problem(415, f"Send the body as {' or '.join(wanted)}, in UTF-8.")
        return None

    def _media(self, scope: "Scope") -> tuple[str, ...]:
        """The types of the bodies that an address takes: JSON, unless an extension differs."""
        found = (each.media for each in self._others if each.matches(scope)[0] is Match.FULL)
        return next(found, _JSON)

    def _allowed(self, scope: "Scope") -> str:
        """The methods of an address, as a header lists them; empty if there is no such one."""
        found = [m for m in ANSWERED if self._matches({**scope, "method": m})]
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
