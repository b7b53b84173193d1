"""One request of a webhook: a POST over a connection of its own to an address that was looked at.

No proxy of the environment is asked, no redirect is followed, and of the answer no more is read
than is kept. What the receiver says by its status counts as soon as its headers are here: one that
then takes its time over the body has still said it.
"""

import asyncio
import ssl
import time
from collections.abc import Sequence
from functools import lru_cache

import h11
from msgspec import Struct

from penstock.apps.agents.webhooks.addresses import Address, Network, Target, resolve
from penstock.model.errors import PenstockError
from penstock.model.redact import redact

LONGEST_HEAD = 32_768
LONGEST_BODY = 4_096
KEPT_CHARACTERS = 1_000
CHUNK = 16_384
OTHER_ADDRESS_SECONDS = 3.0
"""After so long another address of the same host is tried, if it has one."""


class Unanswered(PenstockError):
    """A receiver that gave no answer that can be read."""

    def __init__(self, origin: str, problem: str) -> None:
        self.origin = origin
        self.problem = problem
        super().__init__(f"{origin} gave no answer: {problem}.")


class Answer(Struct, frozen=True, kw_only=True):
    """What a receiver answered; `body` is the beginning of it, without secrets."""

    status: int
    body: str = ""
    retry_after: str | None = None

    @property
    def is_success(self) -> bool:
        """Whether it has taken the message."""
        return 200 <= self.status < 300


async def post(
    target: Target,
    headers: Sequence[tuple[str, str]],
    body: bytes,
    *,
    allow: Sequence[Network],
    timeout: float,
    certificates: str = "",
) -> Answer:
    """Post to a target, all within `timeout` seconds; Refused, or Unanswered."""
    exchange = _Exchange(target)
    began = time.monotonic()
    try:
        async with asyncio.timeout(timeout):
            addresses = await resolve(target, allow)
            await exchange.connect(addresses, certificates)
            await exchange.ask(headers, body)
            await exchange.listen()
    except TimeoutError as error:
        if exchange.head is None:
            took = time.monotonic() - began
            raise Unanswered(target.origin, f"nothing within {took:.0f} s") from error
    except (OSError, h11.ProtocolError) as error:
        if exchange.head is None:
            told = redact(str(error) or type(error).__name__)[:200]
            raise Unanswered(target.origin, told) from error
    finally:
        exchange.close()
    if exchange.head is None:
        raise Unanswered(target.origin, "it hung up")
    return _answer(exchange.head, bytes(exchange.body))


class _Exchange:
    """A connection with one request and its answer, as far as it has come."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._http = h11.Connection(h11.CLIENT, max_incomplete_event_size=LONGEST_HEAD)
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None
        self.body = bytearray()
        self.head: h11.Response | None = None

    async def connect(self, addresses: Sequence[Address], certificates: str) -> None:
        """Connect to the first address that takes the connection."""
        secure = _trust(certificates) if self._target.scheme == "https" else None
        for place, address in enumerate(addresses, start=1):
            last = place == len(addresses)
            try:
                async with asyncio.timeout(None if last else OTHER_ADDRESS_SECONDS):
                    self._reader, self._writer = await asyncio.open_connection(
                        str(address),
                        self._target.port,
                        ssl=secure,
                        server_hostname=self._target.host if secure else None,
                        limit=CHUNK,
                    )
                return
            except OSError:  # a timeout is one
                if last:
                    raise

    async def ask(self, headers: Sequence[tuple[str, str]], body: bytes) -> None:
        """Send the request."""
        assert self._writer is not None
        request = h11.Request(
            method="POST",
            target=self._target.path,
            headers=[
                ("Host", self._target.authority),
                *headers,
                ("Content-Length", str(len(body))),
                ("Accept-Encoding", "identity"),
                ("Connection", "close"),
            ],
        )
        parts = (self._http.send(request), self._http.send(h11.Data(data=body)))
        self._writer.write(b"".join(part for part in parts if part))
        self._http.send(h11.EndOfMessage())
        await self._writer.drain()

    async def listen(self) -> None:
        """Read the answer, until it ends or there is as much of it as is kept."""
        assert self._reader is not None
        while len(self.body) < LONGEST_BODY:
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                self._http.receive_data(await self._reader.read(CHUNK))
            elif isinstance(event, h11.Response):
                self.head = event
            elif isinstance(event, h11.Data):
                self.body += event.data
            elif not isinstance(event, h11.InformationalResponse):
                return

    def close(self) -> None:
        """Hang up at once: nothing that follows matters."""
        if self._writer is not None:
            self._writer.transport.abort()


def _answer(head: h11.Response, body: bytes) -> Answer:
    after = [value for name, value in head.headers if name == b"retry-after"]
    text = body[:LONGEST_BODY].decode("utf-8", "replace")
    return Answer(
        status=head.status_code,
        body=redact(text)[:KEPT_CHARACTERS],
        retry_after=after[0].decode("ascii", "replace")[:40] if after else None,
    )


@lru_cache(maxsize=8)
def _trust(certificates: str) -> ssl.SSLContext:
    """Return what receivers are known by; reading it takes longer than most requests."""
    context = ssl.create_default_context()
    if certificates:
        context.load_verify_locations(cafile=certificates)
    return context
