"""What came of each request: a row of its own, the webhook's figures, and its end if it fails on.

Requests that end while others are being written down are written together, so that many deliveries
to one endpoint do not wait for its row one after the other.
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog
from msgspec import Struct

from penstock.apps.agents.webhooks.records import (
    BY_HAND,
    FAILED,
    GONE,
    SUCCESS,
    TOO_MANY_FAILURES,
)
from penstock.apps.agents.webhooks.topics import DISABLED, Message, Publishing
from penstock.model.errors import PenstockError

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

log = structlog.get_logger("penstock.agents")

DAY_MS = 86_400_000
APART_MS = DAY_MS // 2
"""So far apart the first and the last failure have to be: one bad hour disables nothing."""


class Entry(Struct, frozen=True, kw_only=True):
    """A request that has ended; `is_new` says that no earlier execution wrote of it."""

    tenant_id: str
    webhook_id: str
    job_id: str
    n: int
    attempt: int
    waits: int
    message_id: str
    topic: str
    person: str | None
    payload: str | None
    status: str
    at: int
    status_code: int | None = None
    latency_ms: int | None = None
    response_body: str | None = None
    error_message: str | None = None
    is_new: bool = True

    @property
    def row(self) -> tuple[Any, ...]:
        """As its table has it."""
        return (
            f"{self.job_id}-{self.n}",
            self.tenant_id,
            self.webhook_id,
            self.job_id,
            self.n,
            self.attempt,
            self.waits,
            self.message_id,
            self.topic,
            self.person,
            self.payload,
            self.status,
            self.status_code,
            self.latency_ms,
            self.response_body,
            self.error_message,
            self.at,
        )


Waiting = tuple[Entry, asyncio.Future[None]]


class DeliveryLog:
    """Writes requests down, as many at once as have ended meanwhile."""

    def __init__(self, app: "Penstock") -> None:
        self._app = app
        self._waiting: list[Waiting] = []
        self._writer: asyncio.Task[None] | None = None

    async def record(self, entry: Entry) -> None:
        """Write a request down; it is there when this returns."""
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((entry, written))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        await written

    async def _write(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            problem = await self._try(batch)
            if isinstance(problem, PenstockError) and len(batch) > 1:
                # One of them cannot be written, and the others are not to suffer for it.
                for each in batch:
                    _tell([each], await self._try([each]))
            else:
                _tell(batch, problem)
            if problem is not None and not isinstance(problem, Exception):
                raise problem

    async def _try(self, batch: Sequence[Waiting]) -> BaseException | None:
        """Write some down in one commit; what is in the way, if anything is."""
        try:
            await self._app.transact(partial(write, self._app, [entry for entry, _ in batch]))
        except BaseException as error:
            return error
        return None


def _tell(batch: Sequence[Waiting], problem: BaseException | None) -> None:
    for _, written in batch:
        if written.done():
            continue
        if problem is None:
            written.set_result(None)
        else:
            written.set_exception(problem)


def write(app: "Penstock", entries: Sequence[Entry], tx: Any) -> None:
    """Write requests down in a transaction, and disable whoever fails on."""
    tx.agents.many("delivery_put", [entry.row for entry in entries])
    by_webhook: dict[str, list[Entry]] = defaultdict(list)
    for entry in entries:
        by_webhook[entry.webhook_id].append(entry)
    for webhook_id in sorted(by_webhook):  # in one order, so that two writers never deadlock
        _count(app, tx, webhook_id, by_webhook[webhook_id])


def _count(app: "Penstock", tx: Any, webhook_id: str, entries: Sequence[Entry]) -> None:
    good = [entry for entry in entries if entry.status == SUCCESS]
    if good:
        figures = {
            "id": webhook_id,
            "many": len(good),
            "latency": float(sum(entry.latency_ms or 0 for entry in good)),
            "at": max(entry.at for entry in good),
        }
        tx.agents.run("webhook_succeeded", figures)
    bad = [entry for entry in entries if entry.status == FAILED]
    if not bad:
        return
    new = sum(entry.is_new for entry in bad)
    tx.agents.run("webhook_failed", {"id": webhook_id, "many": new})
    if any(entry.status_code == 410 for entry in bad):
        disable(app, tx, webhook_id, bad[0].tenant_id, GONE)
    else:
        _judge(app, tx, webhook_id, (entry.at for entry in bad))


def _judge(app: "Penstock", tx: Any, webhook_id: str, at: Iterable[int]) -> None:
    row = tx.agents.row("webhook_failing", {"id": webhook_id, "since": max(at) - DAY_MS})
    if row is None:
        return
    failures, first, last, most, tenant_id = row
    if most and failures >= most and last - first >= APART_MS:
        disable(app, tx, webhook_id, tenant_id, TOO_MANY_FAILURES)


def disable(app: "Penstock", tx: Any, webhook_id: str, tenant_id: str, reason: str) -> bool:
    """Disable a webhook in a transaction, and tell those of its tenant who subscribe to that."""
    if not tx.agents.run("webhook_disable", {"id": webhook_id, "reason": reason, "now": tx.now}):
        return False
    message = Message(
        topic=DISABLED,
        tenant_id=tenant_id,
        at=tx.now,
        data={"id": webhook_id, "reason": reason},
        seed=("webhook", webhook_id),
    )
    Publishing(app, tx).tell(message)
    if reason != BY_HAND:
        log.warning("webhook_disabled", webhook=webhook_id, reason=reason)
    return True
