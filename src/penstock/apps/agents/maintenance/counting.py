"""Counting jobs and events where they come in, against what a tenant may use.

A process takes a block of a tenant's quota at a time, in one small transaction, and counts jobs
against it in memory: at most one write a second for each tenant that is busy here, however many
jobs come in, and never more of them than the quota allows. What is left of a block is given back;
that of a process which is killed stays counted.
"""

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from msgspec import Struct

from penstock.apps.agents.maintenance.quotas import (
    SLOTS,
    Action,
    Measure,
    Quota,
    State,
    current,
    quotas_of,
)
from penstock.apps.agents.maintenance.standing import Standing, act_on, noted
from penstock.extension import NotKnownYet, Way
from penstock.model.controls import parse_rate
from penstock.model.ids import new_id

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.events.event import NewEvent
    from penstock.model.job import Job, NewJob

TRUST_SECONDS = 1.0
"""So long after a look a block, and whether its quota is used up, is taken for granted."""
UNLIMITED_TRUST_SECONDS = 5.0
IDLE_SECONDS = 10.0
SMALL_BLOCK = 100

EXEMPT = frozenset({"data-deletion", "data-export", "audit-export", "quota-check"})
"""What a tenant may have done whatever it has used."""

COUNTED = (Measure.JOBS, Measure.EVENTS)


class Block:
    """What this process may still let in of a tenant's jobs, or events, until a time."""

    __slots__ = ("at", "is_last", "left", "period", "quota", "spent", "until", "used", "wanted")

    def __init__(self) -> None:
        self.quota: Quota | None = None
        self.period = ""
        self.at = 0
        self.until = 0
        self.left = 0
        self.spent = 0
        self.wanted = 0
        self.used = 0.0
        self.is_last = False
        """There is no more to be had than what is left."""


class Account:
    """What is known here of a tenant."""

    __slots__ = ("blocks", "closed", "known_until", "used_at")

    def __init__(self) -> None:
        self.blocks: dict[Measure, Block] = {}
        self.closed: str | None = None
        self.known_until = 0.0
        self.used_at = time.monotonic()


class Asked(Struct, frozen=True):
    """What a look exchanges: what is left of a block, and how much more is wanted."""

    period: str
    at: int
    left: int
    spent: int
    wanted: int


class Granted(Struct, frozen=True):
    """The block that takes the place of another; none without a quota."""

    quota: Quota
    period: str
    at: int
    until: int
    block: int
    used: float
    is_last: bool


class Seen(Struct, frozen=True):
    """What a look found of a tenant."""

    granted: dict[Measure, Granted]
    closed: str | None
    changed: list[Standing]


class Meter:
    """Counts for one application; called from any thread."""

    def __init__(self, app: "Penstock") -> None:
        self._app = app
        self._lock = threading.Lock()
        self._accounts: dict[str, Account] = {}
        self._unlimited_until = float("-inf")
        self._slot = sum(new_id().encode()) % SLOTS
        self._looks = 0
        self._looking: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock]
        self._looking = WeakKeyDictionary()

    def take(self, measure: Measure, counts: Mapping[str, int]) -> str | None:
        """Count so many for each tenant, or say why none of them may come in."""
        now = time.monotonic()
        if now < self._unlimited_until or not counts:
            return None
        wall = self._app.store.clock.now()
        with self._lock:
            taken: list[tuple[Block, int]] = []
            for tenant, number in counts.items():
                account = self._account(tenant, now, counts)
                if account.closed is not None:
                    return account.closed
                block = account.blocks.get(measure)
                if block is None or block.quota is None:
                    continue
                if block.until <= wall or (block.left < number and not block.is_last):
                    block.wanted = max(block.wanted, number)
                    raise NotKnownYet(partial(self.look, [*counts]))
                if block.left < number:
                    return block.quota.refusal(block.used + block.spent)
                taken.append((block, number))
            for block, number in taken:
                block.left -= number
                block.spent += number
        return None

    def give_back(self, measure: Measure, counts: Mapping[str, int]) -> None:
        """Uncount what did not come in."""
        with self._lock:
            for tenant, number in counts.items():
                account = self._accounts.get(tenant)
                block = account.blocks.get(measure) if account else None
                if block is not None and block.quota is not None:
                    block.left += number
                    block.spent -= min(number, block.spent)

    def refusal(self, measure: Measure, tenant: str) -> str | None:
        """Why nothing of a tenant may come in, without counting anything."""
        now = time.monotonic()
        if now < self._unlimited_until:
            return None
        with self._lock:
            account = self._account(tenant, now, [tenant])
            if account.closed is not None:
                return account.closed
            block = account.blocks.get(measure)
            if block is None or block.quota is None:
                return None
            if block.until <= self._app.store.clock.now():
                raise NotKnownYet(partial(self.look, [tenant]))
            used_up = block.is_last and block.left < 1
            return block.quota.refusal(block.used + block.spent) if used_up else None

    def _account(self, tenant: str, now: float, asked: Iterable[str]) -> Account:
        account = self._accounts.get(tenant)
        if account is None or account.known_until <= now:
            raise NotKnownYet(partial(self.look, [*asked]))
        account.used_at = now
        return account

    def forget(self) -> None:
        """Look again before anything else comes in: a quota was changed."""
        with self._lock:
            self._unlimited_until = float("-inf")
            for account in self._accounts.values():
                account.known_until = 0.0

    async def look(self, tenants: Iterable[str]) -> None:
        """Exchange the blocks of some tenants, in one transaction; what is idle is given back."""
        seen = self._looks
        loop = asyncio.get_running_loop()
        async with self._looking.setdefault(loop, asyncio.Lock()):
            if self._looks != seen:
                return  # somebody just did, and may have looked at these, too
            if not await self._has_quotas():
                with self._lock:
                    self._accounts.clear()
                    self._unlimited_until = time.monotonic() + UNLIMITED_TRUST_SECONDS
                return
            asked = self._set_aside({*tenants})
            try:
                found = await self._app.transact(partial(_exchange, slot=self._slot, asked=asked))
            except BaseException:
                self._put_back(asked)
                raise
            self._install(found)
            self._looks += 1
        changed = [standing for each in found.values() for standing in each.changed]
        if changed:
            await act_on(self._app, changed)

    async def _has_quotas(self) -> bool:
        if (self._app.beside or self._app.store).tables is None:
            return False
        return bool(await self._app.read(lambda tx: tx.agents.value("any_quota")))

    async def close(self) -> None:
        """Give back what is left of all blocks; the application is being closed."""
        with self._lock:
            there = list(self._accounts)
        if there:
            asked = self._set_aside(set(), whole=True)
            await self._app.transact(partial(_exchange, slot=self._slot, asked=asked, gives=True))
        with self._lock:
            self._accounts.clear()
        self.forget()

    def _set_aside(
        self, tenants: set[str], *, whole: bool = False
    ) -> dict[str, dict[Measure, Asked]]:
        """Take what is left out of blocks; whoever wants in meanwhile waits for this look."""
        idle = time.monotonic() - IDLE_SECONDS
        asked: dict[str, dict[Measure, Asked]] = {}
        with self._lock:
            for tenant in tenants:
                self._accounts.setdefault(tenant, Account()).used_at = time.monotonic()
            for tenant, account in list(self._accounts.items()):
                stale = account.used_at < idle
                if not (whole or stale or tenant in tenants):
                    continue
                asked[tenant] = {
                    measure: Asked(block.period, block.at, block.left, block.spent, block.wanted)
                    for measure, block in account.blocks.items()
                }
                for block in account.blocks.values():
                    block.left, block.is_last = 0, False
                if stale and tenant not in tenants:
                    del self._accounts[tenant]
        return asked

    def _put_back(self, asked: Mapping[str, Mapping[Measure, Asked]]) -> None:
        with self._lock:
            for tenant, blocks in asked.items():
                account = self._accounts.setdefault(tenant, Account())
                for measure, ask in blocks.items():
                    account.blocks.setdefault(measure, Block()).left += ask.left

    def _install(self, found: Mapping[str, Seen]) -> None:
        now = time.monotonic()
        with self._lock:
            for tenant, seen in found.items():
                account = self._accounts.get(tenant)
                if account is None:
                    continue
                account.closed = seen.closed
                trusted = TRUST_SECONDS if seen.granted else UNLIMITED_TRUST_SECONDS
                account.known_until = now + trusted
                for measure in COUNTED:
                    granted = seen.granted.get(measure)
                    if granted is None:
                        account.blocks.pop(measure, None)
                        continue
                    block = account.blocks.setdefault(measure, Block())
                    block.quota = granted.quota
                    block.period, block.at, block.until = granted.period, granted.at, granted.until
                    block.left += granted.block
                    block.is_last, block.used = granted.is_last, granted.used
                    block.spent = block.wanted = 0


def _exchange(
    tx: Any, slot: int, asked: Mapping[str, Mapping[Measure, Asked]], *, gives: bool = False
) -> dict[str, Seen]:
    """Give back what is left of blocks, and take new ones unless it only `gives`."""
    found: dict[str, Seen] = {}
    for tenant in sorted(asked):
        quotas = quotas_of(tx, tenant)
        granted: dict[Measure, Granted] = {}
        changed: list[Standing] = []
        for measure in COUNTED:
            ask = asked[tenant].get(measure) or Asked("", 0, 0, 0, 0)
            quota = quotas.get(measure)
            period, until = ("", 0) if quota is None else current(quota.period, tx.now)
            if ask.left and ask.period != period:
                tx.agents.run("give_usage_back", (ask.left, tenant, measure, ask.period, slot))
                ask = Asked(period, ask.at, 0, ask.spent, ask.wanted)
            if quota is None:
                continue
            tx.agents.row("hold_quota", (tenant, measure))
            counted = float(tx.agents.value("quota_used", (tenant, measure, period)))
            used = max(0.0, counted - ask.left)
            block, is_last = (0, False) if gives else _block(quota, used, ask, tx.now)
            if block < ask.left:
                back = ask.left - block
                tx.agents.run("give_usage_back", (back, tenant, measure, period, slot))
            elif block > ask.left:
                tx.agents.run("add_usage", (tenant, measure, period, slot, block - ask.left))
            at = tx.now if block != ask.left else ask.at
            granted[measure] = Granted(quota, period, at, until, block, used, is_last)
            standing = noted(tx, quota, tenant, period, used)
            changed += [] if standing is None else [standing]
        closed = _closed(tx, tenant, quotas.get(Measure.STORAGE))
        found[tenant] = Seen(granted, closed, changed)
    return found


def _block(quota: Quota, used: float, ask: Asked, now: int) -> tuple[int, bool]:
    """As many as may come in until the next look, and whether there is no more to be had.

    They are few enough to leave others some. Jobs of a throttled tenant come in and run slowly;
    its events come in slowly, at the same rate in every process.
    """
    wish = max(ask.wanted, 2 * ask.spent, min(SMALL_BLOCK, int(quota.most) // 200), 1)
    remaining = max(0, int(quota.most - used))
    modest = max(ask.wanted, 1, min(wish, remaining // 4))
    if quota.action is Action.BLOCK:
        block = min(remaining, modest)
        return block, block >= remaining
    if quota.action is Action.THROTTLE and remaining:
        return modest, False
    if quota.measure is Measure.EVENTS and quota.state(used) is State.THROTTLED:
        most, interval = parse_rate(quota.throttle)
        return min(most, ask.left + most * (now - ask.at) // interval), True
    return wish, False


def _closed(tx: Any, tenant: str, quota: Quota | None) -> str | None:
    """Why a tenant whose storage is full may bring nothing in."""
    if quota is None or quota.action is not Action.BLOCK:
        return None
    period, _ = current(quota.period, tx.now)
    used = float(tx.agents.value("quota_used", (tenant, quota.measure, period)))
    return quota.refusal(used) if used >= quota.most else None


_meters: WeakKeyDictionary["Penstock", Meter] = WeakKeyDictionary()


def meter_of(app: "Penstock") -> Meter:
    """The one of an application."""
    found = _meters.get(app)
    if found is None:
        found = _meters.setdefault(app, Meter(app))
    return found


class JobCounter:
    """Counts jobs that come in."""

    def __init__(self, app: "Penstock") -> None:
        self._meter = meter_of(app)

    def take(self, jobs: "Sequence[NewJob]", way: Way) -> str | None:
        """Count them, or say why none of them may come in."""
        return self._meter.take(Measure.JOBS, _by_tenant(jobs))

    def give_back(self, jobs: "Sequence[NewJob]") -> None:
        """Uncount those that did not."""
        self._meter.give_back(Measure.JOBS, _by_tenant(jobs))

    def refusal(self, job: "NewJob | Job") -> str | None:
        """Why a job may not run again: what its tenant may use is used up."""
        if job.type in EXEMPT:
            return None
        return self._meter.refusal(Measure.JOBS, job.tenant_id)

    async def close(self) -> None:
        """Write down what was counted."""
        await self._meter.close()


def _by_tenant(jobs: "Sequence[NewJob]") -> Mapping[str, int]:
    if len(jobs) == 1:
        return {} if jobs[0].type in EXEMPT else {jobs[0].tenant_id: 1}
    return Counter(job.tenant_id for job in jobs if job.type not in EXEMPT)


class EventCounter:
    """Counts events that come in."""

    def __init__(self, app: "Penstock") -> None:
        self._meter = meter_of(app)

    def take(self, events: "Sequence[NewEvent]") -> str | None:
        """Count them, or say why none of them may come in."""
        return self._meter.take(Measure.EVENTS, Counter(each.tenant_id for each in events))

    def give_back(self, events: "Sequence[NewEvent]") -> None:
        """Uncount those that did not."""
        self._meter.give_back(Measure.EVENTS, Counter(each.tenant_id for each in events))
