"""What tenants may use: jobs, events, storage, tokens and money; and how much they have used.

Jobs and events are counted where they come in (`counting.py`), storage is weighed by the job
`quota-check`, and calls of a model reserve here before they are made and settle afterwards.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
from msgspec import Struct
from msgspec.structs import asdict

from penstock.model.controls import parse_rate
from penstock.model.errors import InvalidOption, NotAdmitted
from penstock.model.ids import new_id
from penstock.model.options import check_text

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

C = TypeVar("C", bound=StrEnum)

EVERY = "*"
"""Quotas of this tenant hold for every one that has none of its own."""

SLOTS = 16
LARGEST = 1 << 53
"""Beyond it a counter no longer notices when one more comes in."""


class Measure(StrEnum):
    """What a quota is about; storage is in bytes, money in US dollars."""

    JOBS = "jobs"
    EVENTS = "events"
    STORAGE = "storage"
    TOKENS = "tokens"
    MONEY = "money"


class Period(StrEnum):
    """After what it begins anew, in UTC; `total` never does."""

    HOUR = "hour"
    DAY = "day"
    MONTH = "month"
    TOTAL = "total"


class Action(StrEnum):
    """What happens to a tenant that has used all of it.

    `throttle` lets its jobs run at a slow rate, and `block` keeps them out.
    """

    WARN = "warn"
    THROTTLE = "throttle"
    BLOCK = "block"


class State(StrEnum):
    """How a tenant stands to one of its quotas."""

    OPEN = "open"
    WARNED = "warned"
    THROTTLED = "throttled"
    BLOCKED = "blocked"


class Quota(Struct, frozen=True, kw_only=True):
    """How much a tenant may use of something in a period, and what happens then.

    At `warn_at`, a share of `most`, somebody is told. `throttle` is the rate of a throttled
    tenant's jobs.
    """

    tenant_id: str
    measure: Measure
    period: Period
    most: float
    warn_at: float = 0.8
    action: Action = Action.BLOCK
    throttle: str = "60/min"
    updated_at: int = 0

    def state(self, used: float) -> State:
        """How somebody stands who has used so much."""
        if used >= self.most and self.action is not Action.WARN:
            return State.BLOCKED if self.action is Action.BLOCK else State.THROTTLED
        return State.WARNED if used >= self.warn_at * self.most else State.OPEN

    def refusal(self, used: float) -> str:
        """Why nothing more comes in, in a sentence."""
        told = f"the quota of {self.measure} is used up ({amount(self.measure, used)} of"
        again = "" if self.period is Period.TOTAL else f" a {self.period}"
        return f"{told} {amount(self.measure, self.most)}{again})"


class Usage(Struct, frozen=True, kw_only=True):
    """How far a tenant is with one quota, or what it has used without one."""

    tenant_id: str
    measure: Measure
    period: str
    used: float
    quota: Quota | None
    state: State

    @property
    def share(self) -> float | None:
        """How much of its quota it has used."""
        return None if self.quota is None or not self.quota.most else self.used / self.quota.most


class Reservation(Struct, frozen=True, kw_only=True):
    """What a call may take, until it is settled."""

    id: str
    tenant_id: str
    amounts: dict[str, float]


class QuotaExceeded(NotAdmitted):
    """Something that a tenant's quota keeps out."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(what, "agents", reason)
        self.args = (f"A call of {what} is not let in: {self.reason}.",)


def amount(measure: Measure, value: float) -> str:
    """A figure as people write it."""
    if measure is Measure.MONEY:
        return f"${value:,.2f}"
    return f"{value:,.0f} bytes" if measure is Measure.STORAGE else f"{value:,.0f}"


def current(period: Period, now: int) -> tuple[str, int]:
    """The period that a time is in, by its name, and when it ends, both of UTC."""
    at = datetime.fromtimestamp(now / 1000, UTC)
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    match period:
        case Period.HOUR:
            ends = at.replace(minute=0, second=0, microsecond=0) + timedelta(hours=1)
            return f"{at:%Y-%m-%dT%H}", _ms(ends)
        case Period.DAY:
            return f"{at:%Y-%m-%d}", _ms(day + timedelta(days=1))
        case Period.MONTH:
            return f"{at:%Y-%m}", _ms((day.replace(day=1) + timedelta(days=32)).replace(day=1))
        case Period.TOTAL:
            return "total", 1 << 62


def _ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


def quotas_of(tx: Any, tenant: str) -> dict[Measure, Quota]:
    """The quotas that hold for a tenant, its own before those of everybody."""
    found = [msgspec.convert(row, Quota) for row in map(_named, _rows(tx, tenant))]
    return {quota.measure: quota for quota in found}


def _rows(tx: Any, tenant: str) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = tx.agents.rows("quotas_of", {"tenant": tenant})
    return rows


def _named(row: tuple[Any, ...]) -> dict[str, Any]:
    return dict(zip(Quota.__struct_fields__, row, strict=True))


def period_of(measure: str, quotas: Mapping[Measure, Quota], now: int) -> str:
    """Under which period something is counted; without a quota by the month."""
    quota = quotas.get(Measure(measure))
    return current(quota.period if quota else Period.MONTH, now)[0]


async def reserve(app: "Penstock", tenant: str, measures: Mapping[str, float]) -> Reservation:
    """Count what a call may take, such as `{"tokens": 700, "money": 0.01}`, before it is made.

    QuotaExceeded if the tenant may not use so much any more. Settle it afterwards; what is not
    settled within an hour is taken for lost and given back.
    """
    amounts = _amounts(measures)
    made = Reservation(id=new_id(), tenant_id=tenant, amounts=amounts)

    def work(tx: Any) -> str | None:
        quotas = quotas_of(tx, tenant)
        periods = {name: period_of(name, quotas, tx.now) for name in amounts}
        for name, value in sorted(amounts.items()):
            quota = quotas.get(Measure(name))
            if quota is None:
                continue
            tx.agents.row("hold_quota", (tenant, name))
            used = float(tx.agents.value("quota_used", (tenant, name, periods[name])))
            if quota.action is Action.BLOCK and used + value > quota.most:
                return quota.refusal(used)
        for name, value in amounts.items():
            tx.agents.run("add_usage", (tenant, name, periods[name], slot_of(made.id), value))
        held = {name: (periods[name], value) for name, value in amounts.items()}
        text = msgspec.json.encode(held).decode()
        tx.agents.run("add_reservation", (made.id, tenant, text, tx.now))
        return None

    refusal = await app.transact(work)
    if refusal is not None:
        raise QuotaExceeded("a model", refusal)
    return made


async def settle(app: "Penstock", reservation: Reservation, used: Mapping[str, float]) -> None:
    """Count what a call took in place of what was reserved for it; `{}` if it was not made.

    Only the first time counts. What was given back as lost meanwhile is counted, up to a day later.
    """
    took = _amounts(used)
    await app.transact(lambda tx: settle_in(tx, reservation.id, reservation.tenant_id, took))


def _amounts(measures: Mapping[str, float]) -> dict[str, float]:
    """Amounts by measure; InvalidOption for what would be no use, or give others' use back."""
    found: dict[str, float] = {}
    for name, value in measures.items():
        if not 0 <= value <= LARGEST:
            raise InvalidOption(name, value, f"a number from 0 to {LARGEST:,}")
        found[_choice("measure", Measure, name).value] = float(value)
    return found


def settle_in(tx: Any, reservation_id: str, tenant: str, used: Mapping[str, float]) -> None:
    """The same in a unit of work."""
    text = tx.agents.value("take_reservation", (reservation_id,))
    if text is not None:
        _count(tx, reservation_id, tenant, text, used)


def give_back_in(tx: Any, reservation_id: str, tenant: str) -> None:
    """Take a reservation for lost; it may still be settled."""
    text = tx.agents.value("hold_reservation", (reservation_id,))
    if text is not None:
        _count(tx, reservation_id, tenant, text, {})
        tx.agents.run("give_reservation_back", (reservation_id,))


def _count(
    tx: Any, reservation_id: str, tenant: str, reserved: str, used: Mapping[str, float]
) -> None:
    held: dict[str, tuple[str, float]] = msgspec.json.decode(reserved)
    quotas = quotas_of(tx, tenant)
    slot = slot_of(reservation_id)
    for name in sorted({*held, *used}):
        period, before = held.get(name) or (period_of(name, quotas, tx.now), 0.0)
        change = used.get(name, 0.0) - before
        if change:
            tx.agents.run("add_usage", (tenant, name, period, slot, change))


@asynccontextmanager
async def reserved(
    app: "Penstock", tenant: str, measures: Mapping[str, float]
) -> AsyncGenerator[dict[str, float]]:
    """Reserve for what is inside, which fills in what it took; nothing if it raises."""
    reservation = await reserve(app, tenant, measures)
    took: dict[str, float] = {}
    try:
        yield took
    finally:
        await settle(app, reservation, took)


def slot_of(name: str) -> int:
    """One of the rows that a counter is spread over."""
    return sum(name.encode()) % SLOTS


class Quotas:
    """`app.agents.quotas`: set what tenants may use, and see how far they are."""

    def __init__(self, app: "Penstock") -> None:
        self._app = app

    async def set(
        self,
        tenant: str,
        measure: str,
        most: float,
        *,
        period: str | None = None,
        warn_at: float = 0.8,
        action: str = "block",
        throttle: str = "60/min",
    ) -> Quota:
        """Let a tenant use so much: `set("acme", "jobs", 10_000, period="day")`.

        The tenant `*` is every one that has no quota of its own. Storage has no period.
        """
        check_text("tenant", tenant)
        if not 0 <= most <= LARGEST:
            raise InvalidOption("most", most, f"a number from 0 to {LARGEST:,}")
        if not 0 < warn_at <= 1:
            raise InvalidOption("warn_at", warn_at, "a share above 0, up to 1")
        parse_rate(throttle)
        chosen = _choice("measure", Measure, measure)
        usual = Period.TOTAL if chosen is Measure.STORAGE else Period.MONTH
        quota = Quota(
            tenant_id=tenant,
            measure=chosen,
            period=usual if period is None else _choice("period", Period, period),
            most=float(most),
            warn_at=float(warn_at),
            action=_choice("action", Action, action),
            throttle=throttle,
            updated_at=self._app.store.clock.now(),
        )
        if chosen is Measure.STORAGE and quota.period is not Period.TOTAL:
            raise InvalidOption("period", period, "left out, for storage is what there is now")
        await self._app.transact(lambda tx: tx.agents.run("set_quota", asdict(quota)))
        self._look_again()
        return quota

    async def remove(self, tenant: str, measure: str) -> bool:
        """Let a tenant use as much as it likes again, or as everybody may; whether it had one."""
        chosen = _choice("measure", Measure, measure)
        removed = await self._app.transact(
            lambda tx: tx.agents.run("remove_quota", (tenant, chosen))
        )
        self._look_again()
        return bool(removed)

    async def usage(self, tenant: str) -> list[Usage]:
        """What a tenant has used of everything in the period that it is in now."""

        def question(tx: Any) -> list[Usage]:
            quotas = quotas_of(tx, tenant)
            found: list[Usage] = []
            for measure in Measure:
                quota = quotas.get(measure)
                usual = Period.TOTAL if measure is Measure.STORAGE else Period.MONTH
                period, _ = current(quota.period if quota else usual, tx.now)
                used = float(tx.agents.value("quota_used", (tenant, measure, period)))
                if quota is not None or used:
                    state = State.OPEN if quota is None else quota.state(used)
                    found.append(
                        Usage(
                            tenant_id=tenant,
                            measure=measure,
                            period=period,
                            used=used,
                            quota=quota,
                            state=state,
                        )
                    )
            return found

        return await self._app.read(question)

    async def list(self) -> list[Quota]:
        """All that were set, those of everybody first."""
        rows = await self._app.read(lambda tx: tx.agents.rows("quotas"))
        return [msgspec.convert(_named(row), Quota) for row in rows]

    def _look_again(self) -> None:
        from penstock.apps.agents.maintenance.counting import meter_of

        meter_of(self._app).forget()


def _choice(option: str, kind: type[C], value: str) -> C:
    try:
        return kind(value)
    except ValueError:
        raise InvalidOption(option, value, f"one of: {', '.join(kind)}") from None
