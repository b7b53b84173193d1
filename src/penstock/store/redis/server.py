"""The server that holds an installation, or the one node of a cluster that does."""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import redis
from redis.exceptions import MovedError, ReadOnlyError

from penstock.model.errors import ForkedStore, StoreClosed
from penstock.store.redis.backoff import Backoff
from penstock.store.redis.connect import (
    ANSWER_SECONDS,
    Address,
    address_of,
    asynchronous,
    synchronous,
)
from penstock.store.redis.errors import translate, translated
from penstock.store.redis.line import Command, Line
from penstock.store.redis.refusals import Info, check_server, clustered, read_info

MAX_MOVES = 5


class Server:
    """Round trips from the event loop, all on one line, or from any thread.

    A call during an outage waits for its turn to try, a few seconds at most, and then fails.
    """

    def __init__(self, url: str, timeout: float = ANSWER_SECONDS) -> None:
        self.address = address_of(url, timeout)
        self.clustered = False
        self.backoff = Backoff()
        self._node = self.address
        self._known: list[Address] = [self.address]
        self._lock = threading.Lock()
        self._pid: int | None = None
        self._line: Line | None = None
        self._connecting: asyncio.Task[Line] | None = None
        self._retired: list[Line] = []
        self._sync: Any = None  # a pool of redis-py: most of its methods have no types

    @property
    def url(self) -> str:
        """The URL it was opened with."""
        return self.address.url

    @property
    def prefix(self) -> str:
        """What every key of the installation begins with."""
        return self.address.prefix

    async def open(self) -> None:
        """Connect, and refuse a server that could not keep the store's promises."""
        if self._pid is not None:
            self._check()
            return
        self._pid = os.getpid()
        try:
            info = await self.info()
            check_server(self.url, info)
            self.clustered = clustered(info)
            if self.clustered:
                await self._learn_nodes()
                await self.ask("EXISTS", self.prefix)  # the node that holds it answers this
                check_server(self.url, await self.info())
        except BaseException:
            await self.close()
            raise

    def join(self) -> None:
        """Let calls through without asking the server whether it will do."""
        self._pid = os.getpid()

    async def info(self) -> Info:
        """What the server says of itself."""
        return read_info(await self.ask("INFO"))

    async def close(self) -> None:
        """Let all connections go."""
        self._pid = None
        if self._connecting is not None:
            self._connecting.cancel()
            await asyncio.gather(self._connecting, return_exceptions=True)
        with self._lock:
            threads, line, retired = self._sync, self._line, self._retired
            self._line = self._sync = None
            self._retired = []
        for each in retired if line is None else [*retired, line]:
            await each.close()
        if threads is not None:
            threads.disconnect()

    async def ask(self, *command: Any) -> Any:
        """The answer to one command."""
        [answer] = await self.travel([command])
        if isinstance(answer, Exception):
            raise translate(self.url, answer) from answer
        return answer

    async def travel(self, commands: Sequence[Command]) -> list[Any]:
        """One round trip for all commands; an answer may be an error of redis-py."""
        self._check()
        if self.backoff.failures:
            await asyncio.sleep(self.backoff.seconds())
        with translated(self.url):
            try:
                answers = await self._exchange(commands)
                for _ in range(MAX_MOVES):
                    lost = self._follow(answers)
                    if not lost:
                        break
                    again = await self._exchange([commands[place] for place in lost])
                    for place, answer in zip(lost, again, strict=True):
                        answers[place] = answer
            except (redis.RedisError, OSError):
                self._failed()
                raise
            finally:
                self._leave_retired()
        self.backoff.succeeded()
        return answers

    def reply_now(self, command: Command) -> Any:
        """The answer to one command, from any thread; it may be an error of redis-py."""
        self._check()
        if self.backoff.failures:
            time.sleep(self.backoff.seconds())
        with translated(self.url):
            try:
                answer = self._exchange_now(command)
                for _ in range(MAX_MOVES):
                    if not self._follow([answer]):
                        break
                    answer = self._exchange_now(command)
            except (redis.RedisError, OSError):
                self._failed()
                raise
        self.backoff.succeeded()
        return answer

    async def line(self, told: Callable[[Any], None] | None = None) -> Line:
        """A line for the caller alone, to listen on; the caller closes it."""
        self._check()
        return await _line_to(self._node, told)

    def connection_now(self) -> "redis.Connection":
        """The same for a thread that has no event loop."""
        self._check()
        connection = self._synchronous().make_connection()
        connection.connect()
        made: redis.Connection = connection
        return made

    def _check(self) -> None:
        if self._pid is None:
            raise StoreClosed(self.url)
        if self._pid != os.getpid():
            raise ForkedStore(self.url)

    async def _exchange(self, commands: Sequence[Command]) -> list[Any]:
        line = self._line
        if line is None or not line.open:
            line = await self._connected()
        return await line.send(commands)

    async def _connected(self) -> Line:
        """The line, made once for all who wait for it; one of them may give up."""
        if self._connecting is None:
            self._connecting = asyncio.create_task(self._connect())
            self._connecting.add_done_callback(self._has_connected)
        return await asyncio.shield(self._connecting)

    def _has_connected(self, connecting: "asyncio.Task[Line]") -> None:
        self._connecting = None
        if not connecting.cancelled():
            connecting.exception()

    async def _connect(self) -> Line:
        node = self._node
        line = await _line_to(node)
        with self._lock:
            if self._node is node:
                self._line = line
            else:
                self._retired.append(line)
        return line

    def _exchange_now(self, command: Command) -> Any:
        pool = self._synchronous()
        connection = pool.get_connection()
        try:
            connection.send_packed_command(connection.pack_command(*command))
            return connection.read_response()
        except redis.ResponseError as error:
            return error
        except BaseException:
            connection.disconnect()
            raise
        finally:
            pool.release(connection)

    def _synchronous(self) -> Any:
        with self._lock:
            if self._sync is None:
                self._sync = synchronous(self._node)
            return self._sync

    def _follow(self, answers: Sequence[Any]) -> list[int]:
        """Go where the cluster says; the places of the commands that must be sent again."""
        lost = [place for place, answer in enumerate(answers) if isinstance(answer, MovedError)]
        if lost:
            moved: Any = answers[lost[-1]]
            self._go(self._node.at(moved.host or self._node.host, moved.port))
        elif any(isinstance(answer, ReadOnlyError) for answer in answers):
            self._go(self._node)  # a failover: the name may lead to another server by now
        return lost

    def _failed(self) -> None:
        self.backoff.failed()
        if self.clustered:
            # Any other node knows who has taken over.
            places = {(node.host, node.port): place for place, node in enumerate(self._known)}
            place = places.get((self._node.host, self._node.port), -1)
            self._go(self._known[(place + 1) % len(self._known)])

    def _go(self, node: Address) -> None:
        """Use another node, or the same one with new connections."""
        with self._lock:
            self._node = node
            if self._line is not None:
                self._retired.append(self._line)
            self._line = self._sync = None

    def _leave_retired(self) -> None:
        """Let go of lines left behind; calls on them are still answered."""
        while self._retired:
            self._retired.pop().leave()

    async def _learn_nodes(self) -> None:
        seen = {(node.host, node.port): node for node in self._known}
        for _, _, *nodes in await self.ask("CLUSTER", "SLOTS"):
            for host, port, *_ in nodes:
                name = host.decode() if host else self._node.host
                seen.setdefault((name, port), self.address.at(name, port))
        self._known = list(seen.values())


async def _line_to(node: Address, told: Callable[[Any], None] | None = None) -> Line:
    connection: Any = asynchronous(node)  # its methods have no types
    await connection.connect()
    return Line(connection, node.timeout, told)
