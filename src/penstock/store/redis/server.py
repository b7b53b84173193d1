"""The server that holds an installation, or the one node of a cluster that does."""

import asyncio
import os
import threading
import time
from collections.abc import Sequence
from typing import Any

import redis
import redis.asyncio
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
from penstock.store.redis.refusals import Info, check_server, clustered, read_info

Command = Sequence[Any]

MAX_MOVES = 5


class Server:
    """One round trip at a time, from the event loop or from any thread.

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
        # Pools of redis-py: most of their methods have no types.
        self._async: Any = None
        self._sync: Any = None
        self._retired: list[Any] = []

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
        with self._lock:
            threads, mine = self._sync, [*self._retired, self._async]
            self._async = self._sync = None
            self._retired = []
        for pool in mine:
            if pool is not None:
                await pool.disconnect()
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
                await self._leave_retired()
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

    async def connection(self) -> "redis.asyncio.Connection":
        """A connection for the caller alone, to listen on; the caller disconnects it."""
        self._check()
        connection = self._asynchronous().make_connection()
        await connection.connect()
        made: redis.asyncio.Connection = connection
        return made

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
        pool = self._asynchronous()
        connection = await pool.get_connection()
        try:
            request: list[Any] = []
            answers = [_packed(connection, command, request) for command in commands]
            await connection.send_packed_command(request)
            for place, answer in enumerate(answers):
                if answer is None:
                    answers[place] = await _answer(connection)
        except BaseException:
            # What is still to come must not be taken for the answer to the next call.
            await connection.disconnect(nowait=True)
            raise
        finally:
            await pool.release(connection)
            if pool is not self._async:
                await pool.disconnect(inuse_connections=False)
        return answers

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

    def _asynchronous(self) -> Any:
        with self._lock:
            if self._async is None:
                self._async = asynchronous(self._node)
            return self._async

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
            if self._async is not None:
                self._retired.append(self._async)
            self._async = self._sync = None

    async def _leave_retired(self) -> None:
        """Close the idle connections of pools left behind; those in use end with their calls."""
        while self._retired:
            await self._retired.pop().disconnect(inuse_connections=False)

    async def _learn_nodes(self) -> None:
        seen = {(node.host, node.port): node for node in self._known}
        for _, _, *nodes in await self.ask("CLUSTER", "SLOTS"):
            for host, port, *_ in nodes:
                name = host.decode() if host else self._node.host
                seen.setdefault((name, port), self.address.at(name, port))
        self._known = list(seen.values())


def _packed(connection: Any, command: Command, request: list[Any]) -> Any:
    """Add a command to a request; the error of one that cannot be sent, which is its own alone."""
    try:
        request += connection.pack_command(*command)
    except UnicodeEncodeError as error:
        return error
    return None


async def _answer(connection: Any) -> Any:
    try:
        return await connection.read_response()
    except redis.ResponseError as error:
        return error
