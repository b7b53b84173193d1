"""One connection on which calls follow each other without waiting for answers."""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import redis
from hiredis import Reader, pack_command
from msgspec import Struct
from redis.asyncio.connection import DefaultParser
from redis.exceptions import InvalidResponse

Command = Sequence[Any]

LEFT = "the connection was closed"

_INCOMPLETE = object()


class _Trip(Struct, eq=False):
    """Commands that were sent together, and what was answered so far."""

    answers: list[Any]
    unanswered: deque[int]
    arrived: asyncio.Future[list[Any]]


class Line(asyncio.Protocol):
    """Sends commands and gives each its answer; the server answers in the order they were sent.

    It takes over a connection that redis-py has made: the pool, the locks and the timeouts there
    cost more than a call itself. What the server tells unasked goes to `told`.
    """

    def __init__(
        self, connection: Any, timeout: float, told: Callable[[Any], None] | None = None
    ) -> None:
        self._connection = connection
        self._timeout = timeout
        self._told = told
        self._trips: deque[_Trip] = deque()
        self._reader = Reader(
            protocolError=InvalidResponse,
            replyError=DefaultParser.parse_error,
            notEnoughData=_INCOMPLETE,
        )
        self._loop = asyncio.get_running_loop()
        self._watch: asyncio.TimerHandle | None = None
        self._leaving = False
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self.heard_at = self._loop.time()
        self.open = True
        self._transport: Any = connection._writer.transport
        self._transport.set_protocol(self)

    def send(self, commands: Sequence[Command]) -> "asyncio.Future[list[Any]]":
        """The answers to all commands, together; one may be an error of redis-py."""
        trip = _Trip([None] * len(commands), deque(), self._loop.create_future())
        request: list[bytes] = []
        for place, command in enumerate(commands):
            try:
                request.append(pack_command(tuple(command)))
                trip.unanswered.append(place)
            except UnicodeEncodeError as error:  # it cannot be sent, which is its own alone
                trip.answers[place] = error
        if not request:
            trip.arrived.set_result(trip.answers)
            return trip.arrived
        if not self.open:
            trip.arrived.set_exception(redis.ConnectionError(LEFT))
            return trip.arrived
        if not self._trips:
            self.heard_at = self._loop.time()
        self._trips.append(trip)
        self._transport.write(b"".join(request))
        if self._watch is None:
            self._watch = self._loop.call_later(self._timeout, self._look)
        return trip.arrived

    def leave(self) -> None:
        """Close once everything is answered."""
        self._leaving = True
        if not self._trips:
            self._end(redis.ConnectionError(LEFT))

    async def close(self) -> None:
        """Close at once, and return when it is."""
        self._end(redis.ConnectionError(LEFT))
        await self._gone

    async def lost(self) -> None:
        """Return when the connection has ended, whoever ended it."""
        await asyncio.shield(self._gone)

    def data_received(self, data: bytes) -> None:
        """Give answers to those who wait for them."""
        self.heard_at = self._loop.time()
        self._reader.feed(data)
        try:
            while (answer := self._reader.gets()) is not _INCOMPLETE:
                self._hear(answer)
        except InvalidResponse as error:
            self._end(error)
        if self._leaving and not self._trips:
            self._end(redis.ConnectionError(LEFT))

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell everyone who waits."""
        self._end(redis.ConnectionError(str(exc or "Connection closed by server.")))
        if not self._gone.done():
            self._gone.set_result(None)

    def _hear(self, answer: Any) -> None:
        if self._told is not None and isinstance(answer, list) and answer[0] == b"message":
            self._told(answer)
        elif self._trips:
            trip = self._trips[0]
            trip.answers[trip.unanswered.popleft()] = answer
            if not trip.unanswered:
                self._trips.popleft()
                if not trip.arrived.done():
                    trip.arrived.set_result(trip.answers)

    def _look(self) -> None:
        """End a connection on which nothing was heard for too long."""
        self._watch = None
        if not self._trips:
            return
        left = self.heard_at + self._timeout - self._loop.time()
        if left <= 0:
            self._end(redis.TimeoutError("Timeout reading from the server"))
        else:
            self._watch = self._loop.call_later(left, self._look)

    def _end(self, error: Exception) -> None:
        self.open = False
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        self._transport.abort()
        # It counts as unclosed, and warns, while it has these.
        self._connection._writer = self._connection._reader = None
        trips, self._trips = self._trips, deque()
        for trip in trips:
            if not trip.arrived.done():
                trip.arrived.set_exception(error)
