"""Requests to a server: on kept connections, sent again where that is safe, errors as they were."""

import asyncio
import random
import ssl
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import asynccontextmanager, contextmanager
from typing import NamedTuple
from urllib.parse import quote
from weakref import WeakKeyDictionary

import httpx
import msgspec

from penstock.client.remote.problems import Hitch, hitch_of, not_understood, problem_of
from penstock.client.remote.records import Document, one
from penstock.model.errors import InvalidOption, PenstockError, StoreClosed

FIRST_WAIT_SECONDS = 0.1
LONGEST_WAIT_SECONDS = 5.0
SILENCE_SECONDS = 45.0
"""A stream says something every 15 seconds, or it is dead."""
MOST_CONNECTIONS = 100
QUICK_SECONDS = 10.0

Query = Sequence[tuple[str, str]]


class Patience:
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

    def patience(self) -> Patience:
        """A new try's patience."""
        return Patience(self._seconds)

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
    verify = _verifying(ca)
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


def _verifying(ca: str | None) -> ssl.SSLContext | bool:
    if ca is None:
        return True
    try:
        return ssl.create_default_context(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        raise InvalidOption("ca", ca, f"a file of certificates in PEM ({error})") from error


def quoted(name: str) -> str:
    """A name as a part of a path."""
    return quote(name, safe="")
