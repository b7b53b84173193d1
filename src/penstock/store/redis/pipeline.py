"""One connection on which calls follow each other without waiting for answers."""

import asyncio
import random
import select
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

import redis
from hiredis import Reader, pack_command
from redis.asyncio.connection import DefaultParser
from redis.exceptions import InvalidResponse

FIRST_SECONDS = 0.05
LONGEST_SECONDS = 2.0


class Backoff:
    """Doubles with every failure and ends with the first success; safe from any thread."""

    def __init__(self) -> None:
        self.failures = 0
        self._until = 0.0

    def failed(self) -> None:
        """Another try in vain."""
        delay = min(LONGEST_SECONDS, FIRST_SECONDS * 2 ** min(self.failures, 10))
        self.failures += 1
        # Apart from each other, or a thousand clients come back in the same instant.
        self._until = time.monotonic() + delay * random.uniform(0.5, 1.0)

    def succeeded(self) -> None:
        """It answered."""
        if self.failures:
            self.failures = 0
            self._until = 0.0

    def seconds(self) -> float:
        """How long to wait before the next try."""
        return max(0.0, self._until - time.monotonic()) if self.failures else 0.0


Command = tuple[Any, ...]
Answer = asyncio.Future[Any]
Load = list[tuple[Command, Answer]]

LEFT = "the connection was closed"

_INCOMPLETE = object()


class Pipeline(asyncio.Protocol):
    """Sends commands and gives each its answer; the server answers in the order they were sent.

    It takes over a connection that redis-py has made: the pool, the locks and the timeouts there
    cost more than a call itself. What the server tells unasked goes to `told`. `explain` makes of
    an error what a call on it raises; `failed` hears of a pipeline that ends under calls.
    """

    def __init__(
        self,
        connection: Any,
        timeout: float,
        told: Callable[[Any], None] | None = None,
        explain: Callable[[Exception], Exception] | None = None,
        failed: Callable[[], None] | None = None,
    ) -> None:
        self._connection = connection
        self._timeout = timeout
        self._told = told
        self._explain = explain
        self._failed = failed
        self._answers: deque[Answer] = deque()
        self._reader = _new_reader()
        self._loop = asyncio.get_running_loop()
        self._watch: asyncio.TimerHandle | None = None
        self._leaving = False
        self._gone: asyncio.Future[None] = self._loop.create_future()
        self.heard_at = self._loop.time()
        self.open = True
        self._transport: Any = connection._writer.transport
        self._transport.set_protocol(self)

    @property
    def is_idle(self) -> bool:
        """Whether every call was answered."""
        return not self._answers

    def send(self, commands: Sequence[Command]) -> "asyncio.Future[list[Any]]":
        """Return the answers to all commands, together; one may be an error of redis-py."""
        load: Load = [(command, self._loop.create_future()) for command in commands]
        self.post(load)
        return asyncio.gather(*(answer for _, answer in load))

    def post(self, load: Load) -> None:
        """Send commands together, each with the future that waits for its answer."""
        request: list[bytes] = []
        for command, answer in load:
            if not self.open:
                _fail(answer, self._error(redis.ConnectionError(LEFT)))
                continue
            try:
                request.append(pack_command(command))
            except UnicodeEncodeError as error:  # it cannot be sent, which is its own alone
                if not answer.done():
                    answer.set_result(error)
                continue
            if not self._answers:
                self.heard_at = self._loop.time()
            self._answers.append(answer)
        if not request:
            return
        self._transport.write(b"".join(request))
        if self._watch is None:
            self._watch = self._loop.call_later(self._timeout, self._look)

    def leave(self) -> None:
        """Close once everything is answered."""
        self._leaving = True
        if not self._answers:
            self._end(redis.ConnectionError(LEFT))

    async def close(self) -> None:
        """Close at once, and return when it is."""
        self._end(redis.ConnectionError(LEFT))
        await self._gone

    def abandon(self) -> None:
        """Let go after the end of the event loop, which would have closed the socket."""
        self._answers.clear()
        self._end(redis.ConnectionError(LEFT))
        close = getattr(self._transport, "_call_connection_lost", None)
        if close is not None:
            with suppress(RuntimeError):
                close(None)

    async def lost(self) -> None:
        """Return when the connection has ended, whoever ended it."""
        await asyncio.shield(self._gone)

    def data_received(self, data: bytes) -> None:
        """Give answers to those who wait for them."""
        self.heard_at = self._loop.time()
        self._reader.feed(data)
        try:
            while (reply := self._reader.gets()) is not _INCOMPLETE:
                self._hear(reply)
        except InvalidResponse as error:
            self._end(error)
        if self._leaving and not self._answers:
            self._end(redis.ConnectionError(LEFT))

    def connection_lost(self, exc: Exception | None) -> None:
        """Tell everyone who waits."""
        self._end(redis.ConnectionError(str(exc or "Connection closed by server.")))
        if not self._gone.done():
            self._gone.set_result(None)

    def _hear(self, reply: Any) -> None:
        if self._told is not None and isinstance(reply, list) and reply[0] == b"message":
            self._told(reply)
        elif self._answers:
            answer = self._answers.popleft()
            if not answer.done():
                answer.set_result(reply)

    def _look(self) -> None:
        """End a connection on which nothing was heard for too long."""
        self._watch = None
        if not self._answers:
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
        with suppress(RuntimeError):  # its event loop has ended
            self._transport.abort()
        # It counts as unclosed, and warns, while it has these.
        self._connection._writer = self._connection._reader = None
        answers, self._answers = self._answers, deque()
        if answers and self._failed is not None:
            self._failed()
        for answer in answers:
            _fail(answer, self._error(error))

    def _error(self, error: Exception) -> Exception:
        return error if self._explain is None else self._explain(error)


def _fail(answer: Answer, error: Exception) -> None:
    if not answer.done():
        answer.set_exception(error)


class ThreadPipeline:
    """The same for threads, of which one at a time asks and waits for its answer."""

    def __init__(self, connection: Any, generation: int) -> None:
        connection.connect()
        self.generation = generation
        self._connection = connection
        self._socket: socket.socket = connection._sock
        self._reader = _new_reader()
        self._unheard = select.poll()
        self._unheard.register(self._socket, select.POLLIN)

    def ask(self, command: Command) -> Any:
        """Return the answer to a command, which may be an error of redis-py."""
        request = pack_command(command)
        try:
            self._socket.sendall(request)
            while (reply := self._reader.gets()) is _INCOMPLETE:
                data = self._socket.recv(65_536)
                if not data:
                    raise redis.ConnectionError("Connection closed by server.")
                self._reader.feed(data)
        except TimeoutError as error:
            raise redis.TimeoutError("Timeout reading from the server") from error
        if isinstance(reply, redis.ConnectionError):  # it has no room for us, or is loading
            raise reply
        return reply

    @property
    def is_quiet(self) -> bool:
        """Whether nothing was heard since the last answer, as it is when the server hung up."""
        return not self._unheard.poll(0)

    def close(self) -> None:
        """Let go."""
        self._connection.disconnect()


class ThreadPipelines:
    """Lines for threads, made as they are needed and kept for the next one."""

    MOST = 32

    def __init__(self, connect: Callable[[], ThreadPipeline], seconds: float) -> None:
        self._connect = connect
        self._seconds = seconds
        self._free: SimpleQueue[None] = SimpleQueue()  # a semaphore takes ten times as long
        for _ in range(self.MOST):
            self._free.put(None)
        self._idle: list[ThreadPipeline] = []

    def ask(self, command: Command, generation: int) -> Any:
        """Return the answer to a command, asked on a pipeline of this generation."""
        try:
            self._free.get(timeout=self._seconds)
        except Empty:
            raise redis.ConnectionError("No connection available.") from None
        try:
            pipeline = self._idle_pipeline(generation) or self._connect()
            try:
                answer = pipeline.ask(command)
            except UnicodeEncodeError:  # nothing was sent
                self._idle.append(pipeline)
                raise
            except BaseException:
                pipeline.close()
                raise
            self._idle.append(pipeline)
            return answer
        finally:
            self._free.put(None)

    def close(self) -> None:
        """Let go of all pipelines that nobody asks on."""
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def _idle_pipeline(self, generation: int) -> ThreadPipeline | None:
        while True:
            try:
                pipeline = self._idle.pop()
            except IndexError:
                return None
            if pipeline.generation == generation and pipeline.is_quiet:
                return pipeline
            pipeline.close()


def _new_reader() -> Reader:
    return Reader(
        protocolError=InvalidResponse,
        replyError=DefaultParser.parse_error,
        notEnoughData=_INCOMPLETE,
    )
