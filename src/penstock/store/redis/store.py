"""The Redis store: every transition one script, all keys under one hash tag."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from penstock.model.clock import Clock
from penstock.model.ids import new_id
from penstock.model.store_errors import NoTransactions, StoreError, TooManyToCopy
from penstock.model.transfer import refuse_moved
from penstock.store.contract import Durability, Snapshot
from penstock.store.redis.changes import RedisChanges
from penstock.store.redis.controls import RedisControls
from penstock.store.redis.dead import RedisDeadLetters
from penstock.store.redis.inspect import inspect
from penstock.store.redis.jobs import RedisInbox, RedisJobs, RedisLeases
from penstock.store.redis.metrics import RedisMetrics
from penstock.store.redis.migrate import migrate, version
from penstock.store.redis.reader import RedisReader
from penstock.store.redis.records import RedisAuditLog, RedisRecords
from penstock.store.redis.schedules import RedisSchedules
from penstock.store.redis.scripts import Scripts
from penstock.store.redis.server import Server, is_volatile, refuse_volatile
from penstock.store.redis.signals import Listener, Signals
from penstock.store.redis.transfer import RedisTransfer
from penstock.store.redis.upkeep import RedisUpkeep, RedisWorkers

MOST_COPIED = 300_000
"""Copying a key takes the server about 10 µs, during which it does nothing else."""
COPIES = "copies:"
COPIES_MS = 3_600_000
"""The copies of an interrupted backup go by themselves after so long."""


REWRITES_LOOKED, REWRITE_LOOK_SECONDS = 600, 0.1
_REWRITE = "run BGREWRITEAOF on the Redis server: its file still holds what was erased"
_SAVE = "run SAVE on the Redis server: its last snapshot still holds what was erased"


class RedisStore:
    """One installation of penstock in one namespace of a Redis or Valkey server."""

    def __init__(
        self, url: str, clock: Clock | None = None, *, allow_volatile: bool = False
    ) -> None:
        self.url = url
        self._server = Server(url)
        self._may_be_volatile = allow_volatile or self._server.address.allow_volatile
        self._told_clock = clock
        self._scripts = Scripts(self._server, clock)
        self._signals = Signals(self._server)
        self.clock: Clock = self._scripts.clock
        self.jobs = RedisJobs(self._scripts)
        self.leases = RedisLeases(self._scripts)
        self.reader = RedisReader(self._scripts, self._signals)
        self.dead = RedisDeadLetters(self._scripts)
        self.controls = RedisControls(self._scripts)
        self.schedules = RedisSchedules(self._scripts)
        self.workers = RedisWorkers(self._scripts)
        self.metrics = RedisMetrics(self._scripts)
        self.records = RedisRecords(self._scripts)
        self.audit = RedisAuditLog(self._scripts)
        self.upkeep = RedisUpkeep(self._scripts)
        self.changes = RedisChanges(self._scripts)
        self.transfer = RedisTransfer(self._scripts)
        self.tables = None
        self.inbox = RedisInbox(self._scripts)

    async def exists(self) -> bool:
        """Whether the namespace holds an installation."""
        await self._server.open()
        return await version(self._server) > 0

    async def open(self, *, moving: bool = False) -> None:
        """Connect, check the promises, migrate."""
        try:
            await self._prepare(moving=moving)
            if not moving:
                refuse_moved(self.url, await self.transfer.marks())
            self._signals.open()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Finish what is on its way and let go."""
        await self._signals.close()
        await self._server.close()

    @property
    def hears_changes(self) -> bool:
        """Whether wake-ups arrive now; without them everything goes on by polling."""
        return self._signals.connected

    def subscribe(self) -> Listener:
        """Listen for changes made by this or any other process."""
        return self._signals.subscribe()

    async def migrate(self) -> tuple[int, int]:
        """Bring the layout of the keys up to date; the versions before and after."""
        return await self._prepare(moving=False)

    async def _prepare(self, *, moving: bool) -> tuple[int, int]:
        """Migrate, unless the server keeps nothing; what is there already may be moved away."""
        await self._server.open()
        if not self._may_be_volatile and not (moving and await version(self._server)):
            info = await self._server.info()
            kept = info.get("aof_enabled") == "1"
            if not kept and is_volatile(info, await self._server.setting("save")):
                raise refuse_volatile(self.url)
        return await migrate(self._server)

    async def inspect(self) -> Durability:
        """Check every promise this store makes."""
        return await inspect(self._server)

    async def scrub(self) -> list[str]:
        """Have the server write its file anew, and wait until it has."""
        info = await self._server.info()
        if info.get("aof_enabled") != "1":
            return [] if info.get("rdb_last_save_time") == "0" else [_SAVE]
        try:
            await self._server.ask("BGREWRITEAOF")
        except StoreError:
            return [_REWRITE]
        for _ in range(REWRITES_LOOKED):
            info = await self._server.info()
            if "1" not in (info["aof_rewrite_in_progress"], info["aof_rewrite_scheduled"]):
                return []
            await asyncio.sleep(REWRITE_LOOK_SECONDS)
        return [_REWRITE]

    async def dispatch_answers(self) -> bool | None:
        """There is none."""
        return None

    @asynccontextmanager
    async def snapshot(self) -> AsyncGenerator[Snapshot, None]:
        """Hold one moment of the whole installation: a copy of its keys, made in one step."""
        jobs = int(await self._server.ask("ZCARD", f"{self._server.prefix}jobs"))
        if jobs > MOST_COPIED:
            raise TooManyToCopy(self.url, jobs, MOST_COPIED)
        prefix = f"{self._server.prefix}{COPIES}{new_id()}:"
        copies = RedisTransfer(Scripts(self._server, self._told_clock, prefix))
        try:
            await self._scripts.call("copy_keys", prefix, COPIES_MS)
            yield copies
        finally:
            await copies.unlink()

    def connection(self) -> object:
        """Refused: Redis has no transaction that an enqueue could join."""
        raise NoTransactions(self.url)
