"""The server that holds an installation, or the one node of a cluster, and when it is refused."""

import asyncio
import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import redis
from redis.exceptions import MovedError, ReadOnlyError

from penstock.model.store_errors import (
    ForkedStore,
    ServerTooOld,
    StoreClosed,
    StoreError,
    StoreReadOnly,
    StoreUnavailable,
    UnsafeServer,
)
from penstock.store.redis.calls import Calls
from penstock.store.redis.connect import (
    ANSWER_SECONDS,
    Address,
    address_of,
    asynchronous,
    synchronous,
)
from penstock.store.redis.errors import NAME_PRIMARY, translate
from penstock.store.redis.pipeline import (
    Backoff,
    Command,
    Pipeline,
    ThreadPipeline,
    ThreadPipelines,
)

OLDEST = (6, 2)
SAFE_POLICY = "noeviction"

Info = Mapping[str, str]


def read_info(answer: bytes) -> Info:
    """The fields of an answer to INFO."""
    lines = answer.decode("utf-8", "replace").splitlines()
    pairs = (line.partition(":") for line in lines if ":" in line)
    return {name: value for name, _, value in pairs}


def check_server(url: str, info: Info) -> None:
    """Refuse a server that could not keep the store's promises."""
    if version_of(info) < OLDEST:
        found = f"{product(info)} {version_text(info)}"
        raise ServerTooOld(url, found, ".".join(map(str, OLDEST)))
    if info.get("loading", "0") != "0":
        raise StoreUnavailable(url, "it is still loading its data")
    if info.get("role") == "slave" and not clustered(info):
        raise StoreReadOnly(url, NAME_PRIMARY)
    check_policy(url, info)


def check_policy(url: str, info: Info) -> None:
    """Refuse a server that deletes keys of its own accord when its memory is full."""
    policy = info.get("maxmemory_policy")
    if policy != SAFE_POLICY:
        told = "it does not tell its maxmemory-policy"
        problem = told if policy is None else f"its maxmemory-policy is {policy}"
        raise UnsafeServer(url, problem, f"set it to {SAFE_POLICY}")


def is_volatile(info: Info, saves: str | None) -> bool:
    """Whether everything is gone when the server stops; `saves` is its setting, None if not told.

    Without the setting only a snapshot that was made tells that some are made.
    """
    if info.get("aof_enabled") == "1":
        return False
    return info.get("rdb_last_bgsave_time_sec", "-1") == "-1" if saves is None else not saves


def refuse_volatile(url: str) -> UnsafeServer:
    """Say that a server keeps nothing, and what to do about it."""
    return UnsafeServer(
        url,
        "it writes nothing to disk, so everything is gone when it stops",
        "set appendonly to yes there, or allow_volatile=true in the settings or in this URL",
    )


def version_of(info: Info) -> tuple[int, ...]:
    """The version of Redis that a server speaks; Valkey tells it too."""
    numbers = re.findall(r"\d+", info.get("redis_version", ""))
    return tuple(int(number) for number in numbers[:3])


def version_text(info: Info) -> str:
    """The version a server calls its own."""
    return info.get("valkey_version") or info.get("redis_version") or "unknown"


def product(info: Info) -> str:
    """What kind of server it is."""
    return "Valkey" if "valkey_version" in info else "Redis"


def clustered(info: Info) -> bool:
    """Whether it is a node of a cluster."""
    return info.get("cluster_enabled") == "1" or info.get("redis_mode") == "cluster"


MAX_MOVES = 5


class Server:
    """Round trips from event loops, on one pipeline for each of them, or from any thread.

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
        self._calls: dict[asyncio.AbstractEventLoop, Calls] = {}
        self.generation = 0
        self._threads = ThreadPipelines(self._thread_line, self.address.timeout)

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
            self.check()
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

    async def setting(self, name: str) -> str | None:
        """What CONFIG says, or None where it is disabled."""
        try:
            answer = await self.ask("CONFIG", "GET", name)
        except StoreError:
            return None
        return answer[1].decode() if len(answer) > 1 else None

    async def close(self) -> None:
        """Let all connections go."""
        self._pid = None
        own = self._calls.pop(asyncio.get_running_loop(), None)
        if own is not None:
            await own.close()
        with self._lock:
            others = list(self._calls.values())
            self._calls.clear()
        for calls in others:
            calls.drop()
        self._threads.close()

    async def ask(self, *command: Any) -> Any:
        """The answer to one command."""
        answer = await self.reply(command)
        if isinstance(answer, Exception):
            raise translate(self.url, answer) from answer
        return answer

    async def replies(self, commands: Sequence[Command]) -> list[Any]:
        """One round trip for all commands; an answer may be an error of redis-py."""
        self.check()
        calls = self._own_calls()
        coming = [calls.send(command) for command in commands]
        answers = await asyncio.gather(*coming)
        for place, answer in enumerate(answers):
            if isinstance(answer, MovedError | ReadOnlyError):
                answers[place] = await self._go_there(commands[place], answer)
        return answers

    async def reply(self, command: Command) -> Any:
        """The answer to one command; it may be an error of redis-py."""
        self.check()
        answer = await self._own_calls().send(command)
        if isinstance(answer, MovedError | ReadOnlyError):
            return await self._go_there(command, answer)
        return answer

    async def _go_there(self, command: Command, answer: Any) -> Any:
        for _ in range(MAX_MOVES):
            if not self._follow(answer):
                break
            answer = await self._own_calls().send(command)
        return answer

    def reply_now(self, command: Command) -> Any:
        """The answer to one command, from any thread; it may be an error of redis-py."""
        self.check()
        if self.backoff.failures:
            time.sleep(self.backoff.seconds())
        try:
            answer = self._exchange_now(command)
            for _ in range(MAX_MOVES):
                if not self._follow(answer):
                    break
                answer = self._exchange_now(command)
        except (redis.RedisError, OSError) as error:
            self.failed()
            raise translate(self.url, error) from error
        except UnicodeEncodeError as error:
            raise translate(self.url, error) from error
        self.backoff.succeeded()
        return answer

    async def connect(self) -> Pipeline:
        """A pipeline for the calls of the running event loop."""
        explain = partial(translate, self.url)
        return await _line_to(self._node, explain=explain, failed=self.failed)

    async def pipeline(self, told: Callable[[Any], None] | None = None) -> Pipeline:
        """A pipeline for the caller alone, to listen on; the caller closes it."""
        self.check()
        return await _line_to(self._node, told)

    def connection_now(self) -> "redis.Connection":
        """The same for a thread that has no event loop."""
        self.check()
        connection: Any = synchronous(self._node)  # its methods have no types
        connection.connect()
        made: redis.Connection = connection
        return made

    def check(self) -> None:
        """Refuse calls to what is closed, or was opened by another process."""
        if self._pid is None:
            raise StoreClosed(self.url)
        if self._pid != os.getpid():
            raise ForkedStore(self.url)

    def _own_calls(self) -> Calls:
        """The calls of the running event loop."""
        loop = asyncio.get_running_loop()
        calls = self._calls.get(loop)
        if calls is None:
            with self._lock:
                over = [each for each, of_it in self._calls.items() if of_it.is_over]
                for each in over:
                    self._calls.pop(each).drop()
                calls = self._calls[loop] = Calls(self)
        return calls

    def _exchange_now(self, command: Command) -> Any:
        answer = self._threads.ask(command, self.generation)
        if self._pid is None:  # closed meanwhile
            self._threads.close()
        return answer

    def _thread_line(self) -> ThreadPipeline:
        return ThreadPipeline(synchronous(self._node), self.generation)

    def _follow(self, answer: Any) -> bool:
        """Go where the cluster says; whether the command must be sent again."""
        if isinstance(answer, MovedError):
            moved: Any = answer  # the attributes have no types
            host, port = moved.host or self._node.host, moved.port
            if (host, port) != (self._node.host, self._node.port):
                self._go(self._node.at(host, port))
            return True
        if isinstance(answer, ReadOnlyError):
            self._go(self._node)  # a failover: the name may lead to another server by now
        return False

    def failed(self) -> None:
        """Count a trip in vain; in a cluster any other node knows who has taken over."""
        self.backoff.failed()
        if self.clustered:
            places = {(node.host, node.port): place for place, node in enumerate(self._known)}
            place = places.get((self._node.host, self._node.port), -1)
            self._go(self._known[(place + 1) % len(self._known)])

    def _go(self, node: Address) -> None:
        """Use another node, or the same one with new connections."""
        with self._lock:
            self._node = node
            self.generation += 1

    async def _learn_nodes(self) -> None:
        seen = {(node.host, node.port): node for node in self._known}
        for _, _, *nodes in await self.ask("CLUSTER", "SLOTS"):
            for host, port, *_ in nodes:
                name = host.decode() if host else self._node.host
                seen.setdefault((name, port), self.address.at(name, port))
        self._known = list(seen.values())


async def _line_to(
    node: Address,
    told: Callable[[Any], None] | None = None,
    explain: Callable[[Exception], Exception] | None = None,
    failed: Callable[[], None] | None = None,
) -> Pipeline:
    connection: Any = asynchronous(node)  # its methods have no types
    try:
        await connection.connect()
    except BaseException:
        await connection.disconnect(nowait=True)
        raise
    return Pipeline(connection, node.timeout, told, explain, failed)
