"""A made-up installation with a day of history, for pictures of the dashboard."""

import random
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.json import encode

from penstock.app.penstock import Penstock
from penstock.config import Settings
from penstock.model.alert import Alert, AlertState, Turn
from penstock.model.dependency import Edge
from penstock.model.failure import Failure
from penstock.model.ids import new_id
from penstock.model.job import Lease, NewJob
from penstock.model.outcome import Buried, Completed, Failed
from penstock.model.retry import ErrorClass
from penstock.operate.actor import Operator
from penstock.store.contract import Beat, Claim, Report
from penstock.testing.clock import FakeClock

NODES = ("forge-1", "forge-2", "forge-3")
OWNER = "forge-1:4117:general"
STACK = """Traceback (most recent call last):
  File "shop/billing.py", line 88, in charge
    receipt = await bank.charge(order.card, order.total)
  File "shop/bank.py", line 41, in charge
    raise CardDeclined(f"the bank refused the card of order {order.number}")
shop.bank.CardDeclined: the bank refused the card of order 20417
"""


class Kind(Struct, frozen=True):
    """A type of job: where it runs, how long it takes, how often it goes wrong."""

    type: str
    queue: str
    share: int
    took_ms: float
    wrong: float
    tags: tuple[str, ...] = ()


KINDS = (
    Kind("mail.send", "mail", 40, 120, 0.004, ("customer",)),
    Kind("image.resize", "media", 22, 450, 0.002),
    Kind("invoice.render", "billing", 12, 900, 0.01, ("customer", "pdf")),
    Kind("card.charge", "billing", 8, 1_400, 0.03),
    Kind("search.index", "data", 14, 220, 0.001),
    Kind("report.nightly", "data", 1, 6_000, 0.05),
)


ABOUT = {
    "mail.send": "Send a message to a customer.",
    "image.resize": "Make the small pictures of a product.",
    "invoice.render": "Write an invoice as PDF.",
    "card.charge": "Ask the bank for the money.",
    "search.index": "Put an order into the search.",
    "report.nightly": "Sum up the day.",
    "order.fetch": "Read an order from the shop.",
    "order.pack": "Tell the warehouse to pack.",
    "file.archive": "Move a file to the archive.",
}


class Demonstration:
    """Builds the installation with a clock of its own, so that a day takes seconds."""

    def __init__(self, url: str) -> None:
        now = datetime.now(UTC).replace(microsecond=0)
        self.clock = FakeClock(int(now.timestamp() - 86_400) * 1_000)
        self.app = Penstock(url, clock=self.clock, settings=Settings(queue_limit=0))
        self._random = random.Random(7)
        _register(self.app)

    async def build(self) -> None:
        """A day of work, then a moment with something in every state."""
        self._beats()
        for minute in range(0, 1_380, 15):
            await self._work(30 + round(25 * _hump(minute / 1_440)))
            self.clock.advance(15 * 60)
        await self.app.store.metrics.roll_up()
        for step in range(120):
            self.clock.advance(30)
            await self._work(5 + round(6 * _hump(step / 120)) + self._random.randrange(4))
        await self._moment()

    async def _work(self, count: int) -> None:
        store = self.app.store
        weights = [kind.share for kind in KINDS]
        chosen = self._random.choices(KINDS, weights, k=count)
        await store.jobs.enqueue([self._job(kind) for kind in chosen])
        ended = [self._ended(lease) for lease in await self._claim(count + 50)]
        await store.jobs.settle(OWNER, ended)

    def _job(self, kind: Kind, **fields: object) -> NewJob:
        number = self._random.randrange(10_000, 99_999)
        payload = encode({"order": number, "customer": f"c-{number % 997}"}).decode()
        made = {"id": new_id(), "type": kind.type, "queue": kind.queue, "payload": payload}
        return NewJob(**{**made, "tags": kind.tags, **fields})  # type: ignore[arg-type]

    async def _claim(self, limit: int, types: tuple[str, ...] | None = None) -> list[Lease]:
        claim = Claim(
            owner=OWNER,
            types=types or tuple(self.app.types),
            limit=limit,
            start=limit,
            lease_ms=60_000,
        )
        return (await self.app.store.jobs.claim(claim)).leases

    def _ended(self, lease: Lease) -> Completed | Failed | Buried:
        kind = next(kind for kind in KINDS if kind.type == lease.type)
        facts = _facts(
            lease,
            wait_ms=round(self._random.lognormvariate(4.5, 1)),
            duration_ms=round(kind.took_ms * self._random.lognormvariate(0, 0.5)),
            cpu_ms=round(kind.took_ms / 3),
            memory_kb=61_000,
        )
        if self._random.random() > kind.wrong:
            return Completed(**facts, result='{"ok": true}')
        if kind.type == "card.charge":
            return Buried(**facts, failure=_declined())
        return Failed(**facts, failure=_away(), retry_in_ms=20_000)

    async def _moment(self) -> None:
        await self._waiting()
        await self._flow()
        await self._going()
        self._beats()
        await self.app.declare()
        await self.app.schedule(
            "nightly-report",
            self.app.types["report.nightly"].new(),
            cron="0 3 * * *",
            zone="Europe/Vienna",
        )
        await self.app.schedule("reindex", self.app.types["search.index"].new(), every=900)
        await self._operate()
        await self._alert()

    async def _operate(self) -> None:
        """What an operator did this morning."""
        operator = Operator(self.app, "user:ana")
        await operator.controls.pause(queue="archive", reason="the disk is being replaced")
        await operator.controls.set_limit(key="bank", concurrency=3, rate="60/min")
        await operator.controls.set_limit(queue="mail", concurrency=20)
        late, *_ = await self.app.find(status="pending", type="card.charge")
        await operator.jobs.cancel(late.id, "ordered twice")
        await operator.schedules.pause("reindex")

    async def _alert(self) -> None:
        fired_at = self.clock.now() - 340_000
        alert = Alert(
            name="dead_letters",
            rule="dead_letters",
            state=AlertState.FIRING,
            text="10 dead letters are open, most of type card.charge.",
            action="Look at the groups, try a few, release the rest.",
            value=10,
            threshold=10,
            since_at=fired_at,
            fired_at=fired_at,
            history=(Turn(at=fired_at, state=AlertState.FIRING, value=10),),
        )
        await self.app.store.records.put("alert", alert.name, encode(alert).decode())

    async def _going(self) -> None:
        """Jobs that run, some of them far along."""
        store = self.app.store
        wanted = [KINDS[5], KINDS[5], KINDS[2], KINDS[1], KINDS[0]]
        await store.jobs.enqueue([self._job(kind, priority=1) for kind in wanted])
        leases = [(await self._claim(1, (kind.type,)))[0] for kind in wanted]
        self.clock.advance(14)
        told = ((64.0, "page 640 of 1,000"), (22.5, "reading the ledger"), (80.0, "4 of 5 pages"))
        now = self.clock.now()
        lines = [(now - 9_000, "info", "opened the ledger"), (now - 2_000, "warning", "slow disk")]
        await store.jobs.report(
            OWNER,
            [
                Report(
                    id=lease.id,
                    fence=lease.fence,
                    progress_percent=percent,
                    progress_message=message,
                    logs=lines,
                )
                for lease, (percent, message) in zip(leases, told, strict=False)
            ],
        )

    async def _flow(self) -> None:
        """A flow in the middle of its work, and one step of it that failed once."""
        store = self.app.store
        fetch = self._job(Kind("order.fetch", "data", 1, 80, 0), priority=1)
        steps = [
            self._job(
                Kind(name, queue, 1, 80, 0),
                priority=1,
                after=(Edge(parent_id=fetch.id),),
                parent_job_id=fetch.id,
            )
            for name, queue in (
                ("invoice.render", "billing"),
                ("image.resize", "media"),
                ("card.charge", "billing"),
            )
        ]
        pack = self._job(
            Kind("order.pack", "data", 1, 80, 0),
            after=tuple(Edge(parent_id=step.id) for step in steps),
            key="order-20417",
            tags=("customer", "urgent"),
            tenant_id="north",
            created_by="user:ana",
        )
        told = self._job(Kind("mail.send", "mail", 1, 80, 0), after=(Edge(parent_id=pack.id),))
        await store.jobs.enqueue([fetch, *steps, pack, told])
        await self._end(fetch.id, wrong=False)
        await self._end(steps[0].id, wrong=False)
        await self._end(steps[2].id, wrong=True)

    async def _end(self, job_id: str, *, wrong: bool) -> None:
        store = self.app.store
        job = (await store.reader.get([job_id]))[0]
        for lease in await self._claim(1, (job.type,)):
            facts = _facts(lease, duration_ms=640)
            if wrong:
                await store.jobs.settle(
                    OWNER, [Failed(**facts, failure=_away(), retry_in_ms=90_000)]
                )
            else:
                await store.jobs.settle(OWNER, [Completed(**facts, result='{"items": 3}')])

    async def _waiting(self) -> None:
        waiting = [self._job(self._random.choice(KINDS[:5])) for _ in range(160)]
        later = [self._job(KINDS[3], delay_ms=3_600_000) for _ in range(24)]
        held = [self._job(Kind("file.archive", "archive", 1, 80, 0)) for _ in range(18)]
        await self.app.store.jobs.enqueue([*waiting, *later, *held])
        self.clock.advance(3)

    def _beats(self) -> None:
        for n, (node, name) in enumerate(zip(NODES, ("general", "media", "billing"), strict=True)):
            self.app.store.workers.beat(
                Beat(
                    owner=f"{node}:{4_117 + n}:{name}",
                    name=name,
                    node=node,
                    pid=4_117 + n,
                    queues=None if n == 0 else (name,),
                    types=tuple(self.app.types),
                    concurrency=20 if n == 0 else 8,
                    running=0 if n else 5,
                    completed=3_811 // (n + 1),
                    failed=17 // (n + 1),
                    cpu_percent=71 - 22 * n,
                    memory_mb=143 - 21 * n,
                    poll_age_ms=40,
                    state="running" if n < 2 else "draining",
                )
            )


def _register(app: Penstock) -> None:
    for name in (*(kind.type for kind in KINDS), "order.fetch", "order.pack", "file.archive"):

        async def handler(order: int = 20_417, customer: str = "c-1") -> None: ...

        handler.__qualname__, handler.__doc__ = name, ABOUT.get(name)
        app.job(name=name)(handler)


def _hump(part: float) -> float:
    """Quiet at both ends, busy in between."""
    return 4 * part * (1 - part)


def _facts(lease: Lease, **measured: int) -> dict[str, Any]:
    return {
        "id": lease.id,
        "fence": lease.fence,
        "type": lease.type,
        "queue": lease.queue,
        "started_at": lease.started_at or lease.queued_at,
        "attempts": lease.attempts,
        **measured,
    }


def _declined() -> Failure:
    return Failure(
        ErrorClass.INVALID_INPUT,
        "CardDeclined",
        "CardDeclined: the bank refused the card of order 20417",
        STACK,
        "invalid_input|CardDeclined",
    )


def _away() -> Failure:
    return Failure(
        ErrorClass.TRANSIENT_NETWORK,
        "ConnectionError",
        "ConnectionError: the printer did not answer within 5 s",
        STACK.replace("CardDeclined", "ConnectionError"),
        "transient_network|ConnectionError",
    )


def fresh(path: Path) -> str:
    """The URL of a file that is not there yet."""
    for each in path.parent.glob(f"{path.name}*"):
        each.unlink()
    return f"sqlite:///{path}"
