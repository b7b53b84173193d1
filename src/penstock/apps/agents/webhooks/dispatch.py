"""One execution of `webhook-dispatch`, from its data to its result."""

import time
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from penstock.app.keys import NoKey
from penstock.apps.agents.webhooks.addresses import Refused, networks, parse_url
from penstock.apps.agents.webhooks.delivery_log import Entry
from penstock.apps.agents.webhooks.jobs import DispatchData, Dispatched
from penstock.apps.agents.webhooks.records import (
    FAILED,
    SUCCESS,
    THROTTLED,
    Endpoint,
    endpoint_of,
)
from penstock.apps.agents.webhooks.sending import Answer, Unanswered, post
from penstock.apps.agents.webhooks.signing import (
    NAMED,
    USER_AGENT,
    check_headers,
    check_ids,
    plain_signature,
    signatures,
)
from penstock.apps.agents.webhooks.topics import TEST
from penstock.model.errors import InvalidOption, PenstockError

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.apps.agents.webhooks.webhooks import Webhooks
    from penstock.model.job import Lease

DISABLED = "webhook_disabled"
NOT_RETRYABLE = "non_retryable_error"
AGAIN = frozenset({408, 425, 429})
"""Statuses below 500 after which another try may succeed."""


class NotDelivered(PenstockError):
    """A delivery that is worth another try; `retry_after` is what the receiver asked for."""

    def __init__(
        self, origin: str, problem: str, status: int | None = None, retry_after: str | None = None
    ) -> None:
        self.origin = origin
        self.problem = problem
        self.status = status
        self.retry_after = retry_after
        super().__init__(f"{origin} has not taken the delivery: {problem}.")


class _Before(Struct, frozen=True):
    """What earlier executions of a job wrote down last."""

    n: int
    attempt: int
    waits: int
    status: str
    status_code: int | None
    latency_ms: int | None


async def dispatch(app: "Penstock", data: DispatchData, job: "Lease") -> Dispatched:
    """Deliver once; the result, or NotDelivered."""
    endpoint, before = await app.read(lambda tx: _look(tx, data.webhook_id, job))
    if before is not None and before.status == SUCCESS:
        return Dispatched(
            success=True, status_code=before.status_code, latency_ms=before.latency_ms
        )
    if endpoint is None or not (endpoint.is_enabled or data.topic == TEST):
        return Dispatched(success=False, reason=DISABLED)
    return await _Attempt(app, endpoint, data, job, before).run()


def _look(tx: Any, webhook_id: str, job: "Lease") -> tuple[Endpoint | None, _Before | None]:
    endpoint = endpoint_of(tx, webhook_id)
    if endpoint is not None and endpoint.tenant_id != job.tenant_id:
        endpoint = None
    row = tx.agents.row("delivery_last", (job.id,)) if job.fence > 1 else None
    return endpoint, None if row is None else _Before(*row)


class _Attempt:
    """One request and what is written of it."""

    def __init__(
        self,
        app: "Penstock",
        endpoint: Endpoint,
        data: DispatchData,
        job: "Lease",
        before: _Before | None,
    ) -> None:
        self._app = app
        self._webhooks: Webhooks = app.extensions.namespace("agents").webhooks
        self._endpoint = endpoint
        self._data = data
        self._job = job
        self._attempt = job.attempts + 1
        # An execution that was killed after it wrote is this one's own attempt, begun before.
        self._repeats = before is not None and (before.attempt, before.waits) == (
            self._attempt,
            job.snoozes,
        )
        self._n = 1 if before is None else before.n + (not self._repeats)
        self._at = app.store.clock.now()
        self._began = 0.0

    async def run(self) -> Dispatched:
        """Send it, write it down, and say what follows."""
        settings = self._app.extensions.settings("agents").webhooks
        origin = ""
        self._began = time.perf_counter()
        try:
            target = parse_url(self._endpoint.url)
            origin = target.origin
            body = msgspec.json.encode(self._data.payload)
            headers = self._headers(body)
            self._began = time.perf_counter()
            answer = await post(
                target,
                headers,
                body,
                allow=networks(settings.allow),
                timeout=settings.timeout,
                certificates=settings.certificates,
            )
        except Unanswered as error:
            await self._record(FAILED, error=error.problem)
            raise NotDelivered(origin, error.problem) from error
        except (Refused, InvalidOption, NoKey) as error:
            await self._record(FAILED, error=str(error))
            return Dispatched(success=False, reason=NOT_RETRYABLE, error=str(error))
        return await self._judge(answer, origin)

    async def _judge(self, answer: Answer, origin: str) -> Dispatched:
        if answer.is_success:
            latency = await self._record(SUCCESS, answer)
            return Dispatched(success=True, status_code=answer.status, latency_ms=latency)
        problem = f"it answered {answer.status}"
        if 300 <= answer.status < 400:
            problem += ", and redirects are not followed"
        await self._record(THROTTLED if answer.status == 429 else FAILED, answer, problem)
        if answer.status == 410:
            return Dispatched(success=False, reason=DISABLED, status_code=410, error=problem)
        if answer.status in AGAIN or answer.status >= 500:
            raise NotDelivered(origin, problem, answer.status, answer.retry_after)
        return Dispatched(
            success=False, reason=NOT_RETRYABLE, status_code=answer.status, error=problem
        )

    def _headers(self, body: bytes) -> list[tuple[str, str]]:
        """Return the headers of the request; those of the webhook or the job never replace ours."""
        secrets = self._webhooks.secrets
        keys = secrets.signing(self._endpoint, self._at)
        check_ids(self._data.signature, self._data.message_id)
        check_headers(self._data.headers)
        own = {**self._endpoint.own_headers, **self._data.headers}
        filled = {
            name: secrets.read(value.removeprefix(NAMED), self._endpoint.tenant_id)
            if value.startswith(NAMED)
            else value
            for name, value in own.items()
        }
        return [
            ("Content-Type", "application/json"),
            ("User-Agent", USER_AGENT),
            ("X-Webhook-Id", self._endpoint.id),
            ("X-Delivery-Id", self._job.id),
            ("X-Signature", self._data.signature or plain_signature(keys, body)),
            *signatures(keys, self._message_id, self._at // 1000, body),
            *filled.items(),
        ]

    @property
    def _message_id(self) -> str:
        return self._data.message_id or self._job.id

    async def _record(
        self, status: str, answer: Answer | None = None, error: str | None = None
    ) -> int:
        """Write down how it went; return after how many milliseconds."""
        latency = round((time.perf_counter() - self._began) * 1000)
        payload = None
        if self._n == 1:
            payload = msgspec.json.encode(self._data.payload).decode()
        await self._webhooks.log.record(
            Entry(
                tenant_id=self._endpoint.tenant_id,
                webhook_id=self._endpoint.id,
                job_id=self._job.id,
                n=self._n,
                attempt=self._attempt,
                waits=self._job.snoozes,
                message_id=self._message_id,
                topic=self._data.topic,
                person=self._data.person,
                payload=payload,
                status=status,
                at=self._at,
                status_code=None if answer is None else answer.status,
                latency_ms=latency,
                response_body=None if answer is None else answer.body,
                error_message=error,
                is_new=not self._repeats,
            )
        )
        return latency
