"""The bodies of requests: how large they may be, and reading them so that nobody else waits."""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from fastapi import Request
from starlette.exceptions import HTTPException

from penstock.app.arguments import shape_of
from penstock.server.problems import Refusal

if TYPE_CHECKING:
    from starlette.types import Message, Receive

    from penstock.config import Settings

T = TypeVar("T")

MAX_DEPTH = 100
MOST_BYTES = 1 << 20
AROUND_A_PAYLOAD = 65_536
"""What else than the payload a body may hold that has one."""

SMALL_BYTES = 65_536
"""So much is read at once; what is larger is read in a thread."""

AT_ONCE = 2
"""So many threads of a server read large bodies; each may need several times their size."""

TAKE_MANY = frozenset({"enqueue"})
TAKE_ONE_PAYLOAD = frozenset({"put_schedule", "amend_dead_letter"})


class Reading:
    """Reads the large bodies of one server in threads, a few at a time."""

    def __init__(self) -> None:
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def of(self, size: int, read: Callable[[], T]) -> T:
        """Read a body of so many bytes; a small one is not worth a thread."""
        if size <= SMALL_BYTES:
            return read()
        async with self._turns:
            return await asyncio.to_thread(read)


class ApiRequest(Request):
    """A request whose body is JSON as the standard has it: UTF-8, and no NaN."""

    async def json(self) -> Any:
        """The body, decoded."""
        body = await self.body()
        reading: Reading = self.app.state.server.reading
        return await reading.of(len(body), lambda: read_json(body))


def limit_of(operation_id: str | None, settings: "Settings") -> int:
    """How many bytes a body of an operation may hold."""
    if operation_id in TAKE_MANY:
        return settings.request_limit
    most = MOST_BYTES
    if operation_id in TAKE_ONE_PAYLOAD:
        most = max(most, settings.payload_limit + AROUND_A_PAYLOAD)
    return min(most, settings.request_limit)


def bounded(request: Request, limit: int) -> "Receive":
    """What a request sends, refused as soon as it is known to be more than the limit."""
    too_large = f"This request may hold at most {limit:,} bytes; send less at a time."
    length = request.headers.get("content-length", "0")
    if length.isdigit() and int(length) > limit:
        raise Refusal(413, too_large)
    read = 0

    async def receive() -> "Message":
        nonlocal read
        message = await request.receive()
        read += len(message.get("body", b""))
        if read > limit:
            raise HTTPException(413, too_large)
        return message

    return receive


def read_json(body: bytes) -> Any:
    """A body as plain data, refused if it nests deeper than any needs to."""
    if shape_of(body).depth > MAX_DEPTH:
        raise HTTPException(400, f"The body nests deeper than {MAX_DEPTH} levels.")
    return read_body(body, msgspec.json.decode)


def items_of(body: bytes) -> int:
    """How many objects or lists a list holds, counted without making any of them."""
    return shape_of(body).items


def read_body(body: bytes, decode: Callable[[bytes], T]) -> T:
    """A body, refused if it is no JSON; one that does not fit is the caller's affair."""
    try:
        return decode(body)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HTTPException(400, f"The body is no JSON: {error}.") from error
