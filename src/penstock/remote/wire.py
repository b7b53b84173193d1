"""Requests to a server: on kept connections, sent again where that is safe, errors as they were."""

import asyncio
import random
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from functools import cache
from http import HTTPStatus
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote
from weakref import WeakKeyDictionary

import httpx
import msgspec
from msgspec import Raw

from penstock.app.schedules import ScheduleView
from penstock.model.clock import from_iso
from penstock.model.controls import Breaker, BreakerState, Limit, LimitState, Pause
from penstock.model.errors import InvalidOption, PenstockError, ServerRefused, error_of
from penstock.model.explain import Explanation, Reason
from penstock.model.retry_after import retry_after_ms
from penstock.model.schedule import Schedule
from penstock.model.store_errors import (
    AccessDenied,
    StoreClosed,
    StoreError,
    StoreUnavailable,
)
from penstock.operate.controls import QueueState
from penstock.operate.documents import STORED, TIMES
from penstock.operate.stats import Point, Stats
from penstock.store.contract import DeadLetter, QueueDepth

S = TypeVar("S", bound=msgspec.Struct)
Document = dict[str, Raw]

_MAY_BE_PLAIN = {"trace_context"}
_NOTHING = Raw(b"null")


def record(kind: type[S], document: Mapping[str, Raw], **changed: Any) -> S:
    """A record out of a document; what a newer server says besides is left out."""
    names = set(kind.__struct_fields__) - changed.keys()
    known = {name: value(name, raw) for name, raw in document.items() if name in names}
    return msgspec.convert({**known, **changed}, kind)


def value(name: str, raw: Raw) -> Any:
    """A field as a record has it: times in milliseconds, stored documents as JSON text."""
    found = msgspec.json.decode(raw)
    if name in STORED and not (name in _MAY_BE_PLAIN and isinstance(found, str)):
        return _text(raw)
    is_time = name.endswith("_at") or name in TIMES
    return from_iso(found) if is_time and isinstance(found, str) else found


def one(raw: Raw | bytes) -> Document:
    """A document, its fields unread."""
    return msgspec.json.decode(raw, type=Document)


def several(raw: Raw) -> list[Document]:
    """A list of them."""
    return msgspec.json.decode(raw, type=list[Document])


def explanation(document: Document) -> Explanation:
    """Where a job stands, and why."""
    reasons = [record(Reason, each) for each in several(document["reasons"])]
    return record(Explanation, document, reasons=reasons)


def stats(document: Document) -> Stats:
    """What happened in a window of time."""
    series = [record(Point, each) for each in several(document["series"])]
    return record(Stats, document, series=series)


def schedule_view(document: Document) -> ScheduleView:
    """A schedule as it stands."""
    made = record(
        Schedule,
        document,
        payload=_text(document["payload"]),
        options=_text(document["options"]),
        enabled=not msgspec.json.decode(document["paused"]),
        run_count=msgspec.json.decode(document["runs"]),
        last_run_at=_moment(document["last_run"]),
        next_run_at=_moment(document["next_run"]),
    )
    return ScheduleView(made)


def limit_state(document: Document) -> LimitState:
    """A limit, and how much of it is taken."""
    return record(LimitState, document, limit=record(Limit, document))


def queue_state(document: Document) -> QueueState:
    """A queue, and what bounds it."""
    pause = msgspec.json.decode(document["pause"], type=Document | None)
    return QueueState(
        record(QueueDepth, document),
        None if pause is None else record(Pause, pause),
        [limit_state(each) for each in several(document["limits"])],
        msgspec.json.decode(document["workers"], type=int),
    )


def breaker_state(document: Document) -> BreakerState:
    """A breaker, and what has happened to it."""
    return record(BreakerState, document, breaker=record(Breaker, document))


def dead_letter(document: Document) -> DeadLetter:
    """A dead letter; in a list it comes without its snapshot and executions."""
    told = {name: _text(document.get(name, _NOTHING)) for name in ("snapshot", "executions")}
    return record(DeadLetter, document, **{name: text or "null" for name, text in told.items()})


def _text(raw: Raw) -> str | None:
    text = bytes(raw).decode()
    return None if text == "null" else text


def _moment(raw: Raw) -> int | None:
    found = msgspec.json.decode(raw)
    return None if found is None else from_iso(found)


LATER = frozenset({429, 502, 503, 504})
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
HOPELESS = (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.DecodingError)


class Hitch(Exception):
    """A request that may be sent again: what to raise if it is not, and when to come back.

    `untouched` says that the server surely did nothing.
    """

    def __init__(
        self, error: PenstockError, *, untouched: bool, after: float | None = None
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.untouched = untouched
        self.after = after


class Told(msgspec.Struct):
    """A problem document."""

    type: str = "about:blank"
    detail: str = ""
    field: str | None = None
    about: dict[str, Any] = {}


def hitch_of(url: str, error: httpx.RequestError) -> PenstockError | Hitch:
    """What a connection that failed means."""
    words = str(error) or type(error).__name__
    told = StoreUnavailable(url, words)
    if isinstance(error, HOPELESS) or "CERTIFICATE_VERIFY_FAILED" in words:
        return told
    return Hitch(told, untouched=isinstance(error, NEVER_SENT))


def problem_of(url: str, answer: httpx.Response, now_ms: int) -> PenstockError | Hitch:
    """What an answer means that is no success."""
    told = _read(answer)
    known = error_of(told.type, told.detail, told.about)
    if isinstance(known, StoreError):
        # Servers do not tell where their stores are; to this process, the server is the store.
        vars(known).setdefault("store", url)
    if isinstance(known, StoreUnavailable):
        vars(known).setdefault("reason", told.detail.rstrip("."))
    error = known or _of_status(url, answer.status_code, told)
    status = answer.status_code
    if status in LATER and isinstance(error, StoreUnavailable | ServerRefused):
        failed = httpx.HTTPStatusError("", request=answer.request, response=answer)
        wait_ms = retry_after_ms(failed, now_ms)
        after = None if wait_ms is None else wait_ms / 1000
        return Hitch(error, untouched=status == HTTPStatus.TOO_MANY_REQUESTS, after=after)
    return error


def not_understood(url: str, error: Exception) -> ServerRefused:
    """An answer that is none of this API, or of another version of it."""
    return ServerRefused(url, 200, f"its answer cannot be read ({error}).")


def _read(answer: httpx.Response) -> Told:
    try:
        return msgspec.json.decode(answer.content, type=Told)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Told(detail=f"{answer.reason_phrase}.")


def _of_status(url: str, status: int, told: Told) -> PenstockError:
    reason = told.detail.rstrip(".")
    if status == HTTPStatus.UNAUTHORIZED:
        advice = "`penstock tokens create` makes one"
        return AccessDenied(url, "it knows no such token, or no longer", advice)
    if status == HTTPStatus.FORBIDDEN:
        return AccessDenied(url, reason, "use a token that may do this")
    if status in LATER - {HTTPStatus.TOO_MANY_REQUESTS}:
        return StoreUnavailable(url, reason)
    return ServerRefused(url, status, told.detail, told.field)


FIRST_WAIT_SECONDS = 0.1
LONGEST_WAIT_SECONDS = 5.0
SILENCE_SECONDS = 45.0
"""A stream says something every 15 seconds, or it is dead."""
MOST_CONNECTIONS = 100
QUICK_SECONDS = 10.0

Query = Sequence[tuple[str, str]]


class Retries:
    """How long something is tried again, with growing pauses in between."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds
        self._wait = FIRST_WAIT_SECONDS

    async def again(self, asked: float | None = None) -> bool:
        """Wait before the next try, as the other side asks or longer; False if it is too late then.

        Pauses differ by chance, so that not all who were cut off come back at once.
        """
        pause = (asked or 0) + self._wait * random.uniform(0.5, 1)
        self._wait = min(2 * self._wait, LONGEST_WAIT_SECONDS)
        if time.monotonic() + pause > self._until:
            return False
        await asyncio.sleep(pause)
        return True


class _Pool:
    """The connections that one event loop has open, and how often it was opened."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self.client = client
        self.openings = 1


class Reply(NamedTuple):
    """What a server answered, and to which try."""

    body: bytes
    tries: int


class Wire:
    """The way to one server."""

    def __init__(
        self,
        url: str,
        token: str | None,
        *,
        timeout: float,
        patience: float,
        ca: str | None,
        is_local: bool,
    ) -> None:
        self.url = url
        self._seconds = patience
        # A function, because what an attribute holds is shown by many a tool.
        self._make = _maker(url, token, timeout, ca, is_local)
        self._pools: WeakKeyDictionary[asyncio.AbstractEventLoop, _Pool] = WeakKeyDictionary()

    def patience(self) -> Retries:
        """A new try's patience."""
        return Retries(self._seconds)

    async def open(self) -> None:
        """Make ready to connect; calls nest, for every event loop by itself."""
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            self._pools[loop] = _Pool(self._make())
        else:
            pool.openings += 1

    async def close(self) -> None:
        """Undo one `open`; the last one closes the connections."""
        loop = asyncio.get_running_loop()
        pool = self._pools.get(loop)
        if pool is None:
            return
        pool.openings -= 1
        if pool.openings == 0:
            del self._pools[loop]
            await pool.client.aclose()

    async def send(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        query: Query = (),
        repeatable: bool | None = None,
        also: Sequence[int] = (),
        headers: dict[str, str] | None = None,
    ) -> Reply:
        """The answer to a request; `also` are statuses besides success that have one.

        What is `repeatable` does the same however often it arrives. That is taken for granted of
        everything but POST; of the rest only what surely had no effect is sent again.
        """
        may_repeat = method != "POST" if repeatable is None else repeatable
        request = self._request(method, path, body, query, headers)
        patience = self.patience()
        tries = 0
        while True:
            tries += 1
            try:
                async with self._answer(request, also) as answer:
                    return Reply(await answer.aread(), tries)
            except Hitch as hitch:
                if not (may_repeat or hitch.untouched) or not await patience.again(hitch.after):
                    raise hitch.error from hitch.__cause__

    async def ask(
        self,
        method: str,
        path: str,
        told: object = None,
        *,
        query: Query = (),
        repeatable: bool | None = None,
        also: Sequence[int] = (),
    ) -> Document:
        """The document that answers a request; `told` is what it says, as JSON."""
        body = None if told is None else msgspec.json.encode(told)
        reply = await self.send(method, path, body, query=query, repeatable=repeatable, also=also)
        with self.understanding():
            return one(reply.body or b"{}")

    @contextmanager
    def understanding(self) -> Generator[None, None, None]:
        """Say of an answer that does not fit whose it is."""
        try:
            yield
        except (msgspec.DecodeError, KeyError, UnicodeDecodeError) as error:
            raise not_understood(self.url, error) from error

    async def lines(self, path: str) -> AsyncGenerator[str, None]:
        """The lines of a stream as they come; raises a Hitch where it breaks off."""
        request = self._request("GET", path, None, (), {"Accept": "text/event-stream"})
        timeouts = httpx.Timeout(QUICK_SECONDS, read=SILENCE_SECONDS)
        request.extensions["timeout"] = timeouts.as_dict()
        async with self._answer(request, ()) as answer:
            async for line in answer.aiter_lines():
                yield line

    def _request(
        self,
        method: str,
        path: str,
        body: bytes | None,
        query: Query,
        headers: dict[str, str] | None,
    ) -> httpx.Request:
        told = dict(headers or {})
        if body is not None:
            told["Content-Type"] = "application/json"
        params = httpx.QueryParams(list(query)) if query else None
        return self._client.build_request(method, path, content=body, params=params, headers=told)

    @asynccontextmanager
    async def _answer(
        self, request: httpx.Request, also: Sequence[int]
    ) -> AsyncGenerator[httpx.Response, None]:
        """The answer to one try; a Hitch, or the error the server met."""
        try:
            answer = await self._client.send(request, stream=True)
            try:
                if not (answer.is_success or _is_document(answer, also)):
                    await answer.aread()
                    raise self._refused(answer)
                yield answer
            finally:
                await answer.aclose()
        except httpx.RequestError as error:
            raise hitch_of(self.url, error) from error

    def _refused(self, answer: httpx.Response) -> PenstockError | Hitch:
        return problem_of(self.url, answer, now_ms=time.time_ns() // 1_000_000)

    @property
    def _client(self) -> httpx.AsyncClient:
        pool = self._pools.get(asyncio.get_running_loop())
        if pool is None:
            raise StoreClosed(self.url)
        return pool.client


def _is_document(answer: httpx.Response, also: Sequence[int]) -> bool:
    kind = answer.headers.get("content-type", "").partition(";")[0]
    return answer.status_code in also and kind == "application/json"


def _maker(
    url: str, token: str | None, timeout: float, ca: str | None, is_local: bool
) -> Callable[[], httpx.AsyncClient]:
    verify = _verifying(ca, is_local)
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}

    def make() -> httpx.AsyncClient:
        return httpx.AsyncClient(
            base_url=url.rstrip("/") + "/api/",
            headers=headers,
            verify=verify,
            timeout=httpx.Timeout(timeout, connect=min(timeout, QUICK_SECONDS)),
            limits=httpx.Limits(max_connections=MOST_CONNECTIONS),
            # A proxy that the environment names is no way to this very machine.
            trust_env=not is_local,
        )

    return make


def _verifying(ca: str | None, is_local: bool) -> ssl.SSLContext:
    if ca is None:
        return _usual_certificates(trust_env=not is_local)
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise InvalidOption("ca", ca, f"a file of certificates in PEM ({error})") from error


@cache
def _usual_certificates(*, trust_env: bool) -> ssl.SSLContext:
    """Read what this machine trusts once: it is a file of hundreds of certificates."""
    return httpx.create_ssl_context(trust_env=trust_env)


def quoted(name: str) -> str:
    """A name as a part of a path."""
    return quote(name, safe="")
