"""What stands between queued jobs and a worker: pauses, limits, breakers; read once per claim."""

from collections.abc import Iterable, Sequence

from msgspec.json import decode, encode

from penstock.model.controls import (
    EVERY,
    NOTHING_LEASED,
    BreakerPosition,
    BreakerState,
    Leased,
    Limit,
    LimitKind,
    LimitName,
    LimitScope,
    Starts,
    frees_in,
    leased_under,
    names_of,
    room,
    started,
)
from penstock.model.job import Lease
from penstock.store.contract import Claim, Slots
from penstock.store.relational.breakers import breaker_state, is_probing
from penstock.store.relational.transaction import Transaction

Lane = tuple[str, str, str, str]
"""Queue, tenant, type and limit key of the jobs in it."""


class SlotGate:
    """A limit on concurrency, as one owner meets it.

    The owner may run `slots` jobs at once. It may hold more leases than that, in proportion, to go
    on without asking; those of other owners count only as far as they have leases.
    """

    def __init__(
        self, name: LimitName, capacity: int, stored: int | None, own: Leased, others: int
    ) -> None:
        self.name = name
        self.stored = stored
        self.slots = min(own.taken(stored or 0), max(0, capacity - others))
        self.spare = max(0, self.slots - own.started)
        self.leases = own.leases
        self.room = max(0, capacity - others - self.slots)

    @property
    def shut(self) -> bool:
        """Whether the owner has no slot and knows it, so that none of these leases can start."""
        return self.slots == 0 == self.stored

    def use(self) -> None:
        """A lease that waits gets a slot: one that is spare, or a new one."""
        if self.spare:
            self.spare -= 1
        else:
            self.slots += 1
            self.room -= 1

    def give_up_spare(self) -> None:
        """Let others have the slots that nothing here can use."""
        self.slots -= self.spare
        self.room += self.spare
        self.spare = 0

    def admits(self, starts: bool, ahead: float) -> bool | None:
        """Whether one more may be leased to start, or to wait; none when it may not be leased."""
        if starts and self.room > 0:
            return True
        return False if self.leases + 1 <= self.slots * (1 + ahead) else None

    def take(self, starts: bool) -> None:
        """One more was leased."""
        self.leases += 1
        self.slots += starts
        self.room -= starts


class RateGate:
    """A limit on starts in a while; what it admits starts at once, or starts would bunch up."""

    def __init__(self, name: LimitName, limit: Limit, starts: Starts, now: int) -> None:
        self.name = name
        self.limit = limit
        self.starts = starts
        self.left = room(starts, limit, now)
        self.retry_in = frees_in(starts, limit, now)
        self.taken = 0

    def admits(self, starts: bool, ahead: float) -> bool | None:
        """Whether one more may start."""
        return True if starts and self.taken < self.left else None

    def take(self, starts: bool) -> None:
        """One more was leased."""
        self.taken += 1


class BreakerGate:
    """An open breaker lets nothing through, a half-open one a single job.

    A closed one lets all through that start at once: jobs taken in advance would still run, and
    fail, after it has opened.
    """

    def __init__(self, state: BreakerState, now: int, probing: bool) -> None:
        self.state = state
        position = state.position(now)
        self.closed = position is BreakerPosition.CLOSED
        self.left = int(position is BreakerPosition.HALF_OPEN and not probing)
        self.retry_in = state.tries_in_ms(now)
        self.taken = 0

    def admits(self, starts: bool, ahead: float) -> bool | None:
        """Whether one more may start, perhaps as the probe."""
        return True if starts and (self.closed or self.taken < self.left) else None

    def take(self, starts: bool) -> None:
        """One more was leased."""
        self.taken += 1


Gate = SlotGate | RateGate | BreakerGate


class Gates:
    """Every gate of one claim; lanes without one cost nothing."""

    def __init__(self, tx: Transaction, claim: Claim) -> None:
        paused, limits, breakers = tx.row("gates") or ("[]", "[]", "[]")
        self.quiet = paused == limits == breakers == "[]"
        self.starting = 0
        self._left = dict(claim.at_most)
        self.retry_in_ms: int | None = None
        self._tx = tx
        self._claim = claim
        if self.quiet:
            return
        self._paused = {(scope, name) for scope, name in decode(paused)}
        self._limits = {(scope, name, kind): (n, ms) for scope, name, kind, n, ms in decode(limits)}
        self._breakers = [breaker_state(*row) for row in decode(breakers)]
        self._made: dict[object, Gate] = {}
        self._of_lane: dict[Lane, list[Gate]] = {}
        self._leased: dict[LimitName, dict[str, Leased]] = {}
        self._slots: dict[tuple[str, str, str], int] = {}
        if any(kind == LimitKind.CONCURRENCY for _, _, kind in self._limits):
            self._meet_own_leases()

    def open(self, lane: Lane) -> bool:
        """Whether any job of a lane could be leased; asked once, before its jobs are read."""
        queue, tenant, type_, _ = lane
        if self._left.get(type_) == 0:
            return False
        if self.quiet:
            return True
        named = {("queue", queue), ("tenant", tenant), ("type", type_)}
        return not named & self._paused and self._admits(lane, True) is not None

    def admit(self, lane: Lane) -> bool | None:
        """Lease one more of a lane: to start (True), to wait (False), or not at all (None)."""
        if self._left.get(lane[2]) == 0:
            return None
        starts: bool | None = self.starting < self._claim.start
        if not self.quiet:
            starts = self._admits(lane, bool(starts))
            if starts is not None:
                for gate in self._of_lane[lane]:
                    gate.take(starts)
        self.starting += bool(starts)
        if starts is not None and lane[2] in self._left:
            self._left[lane[2]] -= 1
        return starts

    def write(self, leases: Sequence[Lease]) -> Slots:
        """Write down what was taken; how many jobs under each limit the owner may run at once."""
        if self.quiet:
            return {}
        slots: Slots = {}
        for gate in self._made.values():
            if isinstance(gate, SlotGate):
                if gate.leases:
                    slots[gate.name] = gate.slots
                if gate.slots != (gate.stored if gate.leases else gate.stored or 0):
                    row = (*_texts(gate.name), self._claim.owner)
                    self._tx.run("set_slots", (*row, gate.slots))
            elif isinstance(gate, RateGate) and gate.taken:
                starts = started(gate.starts, gate.limit, self._tx.now, gate.taken)
                self._tx.run("set_rate_starts", (*_texts(gate.name), encode(starts).decode()))
            elif isinstance(gate, BreakerGate) and gate.taken and not gate.closed:
                self._remember_probe(gate, leases)
        return slots

    def _meet_own_leases(self) -> None:
        """Give slots to leases that wait for one; a slot is no use to one that lacks another."""
        rows = self._tx.rows("leased_lanes")
        self._leased = leased_under(rows)
        self._slots = read_slots(self._tx)
        self._drop_idle_slots()
        waiting: list[list[SlotGate]] = []
        for owner, queue, tenant, type_, key, leases, started_ in rows:
            if owner == self._claim.owner:
                found = self._gates((queue, tenant, type_, key))
                gates = [gate for gate in found if isinstance(gate, SlotGate)]
                if self._give_slots(gates, leases - started_):
                    waiting.append(gates)
        # Two owners that each have what the other one needs would wait for ever.
        for gate in {id(gate): gate for gates in waiting for gate in gates}.values():
            if not any(gate in gates and not any(g.shut for g in gates) for gates in waiting):
                gate.give_up_spare()

    def _drop_idle_slots(self) -> None:
        """Forget own slots without a lease; with a limit for each key they would pile up."""
        owner = self._claim.owner
        idle = [
            row
            for row in self._slots
            if row[2] == owner and owner not in self._leased.get((LimitScope(row[0]), row[1]), {})
        ]
        if idle:
            self._tx.many("drop_slots", idle)
        for row in idle:
            del self._slots[row]

    def _give_slots(self, gates: list[SlotGate], leases: int) -> int:
        """Slots of all gates of a lane for leases that have not started; how many got none."""
        while leases:
            grows = any(not gate.spare for gate in gates)
            full = self.starting >= self._claim.start or any(not (g.spare or g.room) for g in gates)
            if grows and full:
                break
            for gate in gates:
                gate.use()
            self.starting += grows
            leases -= 1
        return leases

    def _admits(self, lane: Lane, starts: bool) -> bool | None:
        """The strictest answer of all gates of the lane."""
        answer: bool | None = starts
        for gate in self._gates(lane):
            one = gate.admits(starts, self._claim.ahead)
            if one is None:
                self._ask_again(gate)
                return None
            answer = answer and one
        # A rate or a breaker counts what starts now; what waits for a slot would start later.
        waits = starts and not answer
        if waits and any(not isinstance(gate, SlotGate) for gate in self._gates(lane)):
            return None
        return answer

    def _ask_again(self, gate: Gate) -> None:
        wait = None if isinstance(gate, SlotGate) else gate.retry_in
        if wait is not None:
            self.retry_in_ms = min(wait, self.retry_in_ms or wait)

    def _gates(self, lane: Lane) -> list[Gate]:
        found = self._of_lane.get(lane)
        if found is None:
            found = [gate for name in names_of(*lane) for gate in self._gates_of(name)]
            found += [self._breaker_gate(s) for s in self._breakers if lane[2] in s.breaker.types]
            self._of_lane[lane] = found
        return found

    def _gates_of(self, name: LimitName) -> Iterable[Gate]:
        makers = {LimitKind.CONCURRENCY: self._slot_gate, LimitKind.RATE: self._rate_gate}
        for kind, make in makers.items():
            key = (*name, kind)
            limit = self._limits.get(key) or self._limits.get((name[0], EVERY, kind))
            if limit is not None:
                if key not in self._made:
                    self._made[key] = make(name, *limit)
                yield self._made[key]

    def _slot_gate(self, name: LimitName, capacity: int, _: int | None) -> Gate:
        leased = self._leased.get(name, {})
        owner = self._claim.owner
        others = sum(
            has.taken(self._slots.get((*_texts(name), other), 0))
            for other, has in leased.items()
            if other != owner
        )
        stored = self._slots.get((*_texts(name), owner))
        return SlotGate(name, capacity, stored, leased.get(owner, NOTHING_LEASED), others)

    def _rate_gate(self, name: LimitName, capacity: int, interval_ms: int | None) -> Gate:
        limit = Limit(
            scope=name[0],
            name=name[1],
            kind=LimitKind.RATE,
            capacity=capacity,
            interval_ms=interval_ms,
        )
        return RateGate(name, limit, read_starts(self._tx, name), self._tx.now)

    def _breaker_gate(self, state: BreakerState) -> Gate:
        name = state.breaker.name
        if name not in self._made:
            self._made[name] = BreakerGate(state, self._tx.now, is_probing(self._tx, state))
        return self._made[name]

    def _remember_probe(self, gate: BreakerGate, leases: Sequence[Lease]) -> None:
        breaker = gate.state.breaker
        for lease in leases:
            if lease.type in breaker.types:
                self._tx.run("set_probe", (lease.id, self._tx.now, breaker.name))
                return


def read_slots(tx: Transaction) -> dict[tuple[str, str, str], int]:
    """The slots of every owner under every limit: by scope, name and owner."""
    return {(scope, name, owner): slots for scope, name, owner, slots in tx.rows("all_slots")}


def read_starts(tx: Transaction, name: LimitName) -> Starts:
    """The latest starts under a rate."""
    stored = tx.value("rate_starts", _texts(name))
    return [] if stored is None else [(at, count) for at, count in decode(stored)]


def _texts(name: LimitName) -> tuple[str, str]:
    return name[0].value, name[1]
