"""`webhook-dispatch` from its enqueueing to the receiver, and what is written of it."""

import hashlib
import hmac
import json
import time
from typing import Any

import pytest
from msgspec.structs import replace
from standardwebhooks import Webhook, WebhookVerificationError

from penstock import Penstock
from penstock.apps.agents.webhooks.dispatch import NotDelivered, dispatch
from penstock.apps.agents.webhooks.jobs import DispatchData
from penstock.apps.agents.webhooks.signing import as_bytes
from penstock.model.errors import InvalidOption
from penstock.model.ids import new_id
from penstock.model.job import Lease
from penstock.testing import FakeClock, drain
from tests.apps.agents.raw import rows
from tests.apps.agents.webhooks.conftest import deliver
from tests.apps.agents.webhooks.receiver import Receiver, answering, hanging_up

pytestmark = pytest.mark.thorough("postgres")

HOUR = 3_600
WORD = "-".join(("not", "a", "word", "to", "guess"))


def result_of(job: Any) -> dict[str, Any]:
    assert job.status == "completed", job.error
    result: dict[str, Any] = json.loads(job.result)
    return result


def log_of(app: Penstock) -> list[tuple[Any, ...]]:
    return rows(
        app,
        "SELECT n, status, status_code, response_body, error_message "
        "FROM agents_webhook_deliveries ORDER BY created_at, n",
    )


@pytest.mark.quick("postgres")
async def test_a_delivery_is_signed_as_others_libraries_verify_it(
    hooks: Penstock, receiver: Receiver, clock: FakeClock
) -> None:
    clock.set_wall(time.time_ns() // 1_000_000)
    new = await hooks.agents.webhooks.add(receiver.url)
    paid = {"type": "order.paid", "data": {"n": 7, "who": "Ärzte"}}
    job = await deliver(hooks, new.webhook.id, paid)
    [request] = receiver.got
    told = Webhook(new.secret).verify(request.body, request.headers)
    assert told == paid
    with pytest.raises(WebhookVerificationError):
        Webhook(new.secret).verify(request.body + b" ", request.headers)
    assert request.headers["webhook-id"] == job.id


async def test_a_delivery_has_the_headers_of_the_seed(here: Penstock, receiver: Receiver) -> None:
    new = await here.agents.webhooks.add(receiver.url, headers={"X-Shop": "north"})
    job = await deliver(here, new.webhook.id, headers={"X-Trace": "t1"})
    [request] = receiver.got
    assert request.line == "POST /hooks?from=penstock HTTP/1.1"
    signature = hmac.new(as_bytes(new.secret), request.body, hashlib.sha256).hexdigest()
    assert (
        request.headers.items()
        >= {
            "Content-Type": "application/json",
            "User-Agent": "Penstock-Webhook/1.0",
            "X-Webhook-Id": new.webhook.id,
            "X-Delivery-Id": job.id,
            "X-Signature": f"sha256={signature}",
            "X-Shop": "north",
            "X-Trace": "t1",
        }.items()
    )


async def test_a_signature_that_came_along_is_the_one_that_is_sent(
    here: Penstock, receiver: Receiver
) -> None:
    new = await here.agents.webhooks.add(receiver.url)
    await deliver(here, new.webhook.id, signature="made elsewhere")
    assert receiver.got[0].headers["X-Signature"] == "made elsewhere"


async def test_what_was_delivered_is_written_down_and_counted(
    hooks: Penstock, receiver: Receiver
) -> None:
    new = await hooks.agents.webhooks.add(receiver.url)
    receiver.behaviours = [answering(200, "taken")]
    result = result_of(await deliver(hooks, new.webhook.id))
    assert result.keys() == {"success", "statusCode", "latencyMs"}
    assert (result["success"], result["statusCode"]) == (True, 200)
    assert log_of(hooks) == [(1, "success", 200, "taken", None)]
    [figures] = rows(
        hooks,
        "SELECT success_count, failure_count, mean_latency, delivered_at FROM agents_webhooks",
    )
    assert figures[:2] == (1, 0)
    assert figures[2] == result["latencyMs"]
    assert figures[3] == hooks.store.clock.now()


async def test_of_an_answer_the_first_thousand_characters_are_kept_without_secrets(
    hooks: Penstock, receiver: Receiver
) -> None:
    new = await hooks.agents.webhooks.add(receiver.url)
    receiver.behaviours = [answering(200, f"password={WORD} \0 {'ö' * 3_000}")]
    await deliver(hooks, new.webhook.id)
    [(kept,)] = rows(hooks, "SELECT response_body FROM agents_webhook_deliveries")
    assert kept.startswith("password=[REDACTED_PASSWORD] \ufffd öö")
    assert len(kept) == 1_000


async def test_a_webhook_that_is_disabled_unknown_or_anothers_ends_the_job_with_the_reason(
    here: Penstock, receiver: Receiver
) -> None:
    off = await here.agents.webhooks.add(receiver.url)
    await here.agents.webhooks.disable(off.webhook.id)
    foreign = await here.agents.webhooks.add(receiver.url, tenant="north")
    for webhook_id in (off.webhook.id, foreign.webhook.id, "01NOSUCH"):
        result = result_of(await deliver(here, webhook_id))
        assert result == {"success": False, "reason": "webhook_disabled"}
    assert receiver.got == []


@pytest.mark.parametrize("status", [301, 302, 307, 400, 401, 404, 422])
async def test_an_answer_that_another_try_does_not_change_ends_the_job(
    here: Penstock, receiver: Receiver, status: int
) -> None:
    new = await here.agents.webhooks.add(receiver.url)
    elsewhere = receiver.url.replace("hooks", "elsewhere")
    receiver.behaviours = [answering(status, "no", Location=elsewhere)]
    handle = await here.agents.webhooks.send(new.webhook.id, {"n": 1})
    await drain(here)
    result = result_of(await here.get(handle.id))
    assert (result["success"], result["reason"]) == (False, "non_retryable_error")
    assert f"it answered {status}" in result["error"]
    assert len(receiver.got) == 1  # whatever Location says
    assert log_of(here)[0][:4] == (1, "failed", status, "no")


async def test_who_is_away_is_tried_ten_times_under_one_id(
    hooks: Penstock, receiver: Receiver, clock: FakeClock
) -> None:
    new = await hooks.agents.webhooks.add(receiver.url)
    receiver.behaviours = [hanging_up, *[answering(503)] * 12]
    handle = await hooks.agents.webhooks.send(new.webhook.id, {"n": 1})
    await drain(hooks, clock=clock, through=4 * HOUR)
    job = await hooks.get(handle.id)
    assert job.status == "dead_letter"
    assert [request.delivery for request in receiver.got] == [handle.id] * 10
    assert {request.headers["webhook-id"] for request in receiver.got} == {handle.id}
    log = log_of(hooks)
    assert [entry[0] for entry in log] == list(range(1, 11))
    assert log[0][1:3] == ("failed", None)
    assert log[1] == (2, "failed", 503, "", "it answered 503")


async def test_who_comes_back_gets_it(here: Penstock, receiver: Receiver, clock: FakeClock) -> None:
    new = await here.agents.webhooks.add(receiver.url)
    receiver.behaviours = [answering(500), answering(408), answering(200)]
    handle = await here.agents.webhooks.send(new.webhook.id, {"n": 1})
    await drain(here, clock=clock, through=60)
    assert result_of(await here.get(handle.id))["success"]
    assert [entry[1] for entry in log_of(here)] == ["failed", "failed", "success"]


async def test_who_asks_for_patience_is_given_it_and_has_not_failed(
    hooks: Penstock, receiver: Receiver, clock: FakeClock
) -> None:
    new = await hooks.agents.webhooks.add(receiver.url)
    receiver.behaviours = [answering(429, Retry_After="120"), answering(200)]
    handle = await hooks.agents.webhooks.send(new.webhook.id, {"n": 1})
    await drain(hooks)
    clock.advance(119)
    await drain(hooks)
    assert len(receiver.got) == 1
    clock.advance(2)
    await drain(hooks)
    job = await hooks.get(handle.id)
    assert result_of(job)["success"]
    assert (job.attempts, job.snoozes) == (1, 1)  # waiting is no attempt
    assert [entry[1] for entry in log_of(hooks)] == ["throttled", "success"]
    assert rows(hooks, "SELECT failure_count FROM agents_webhooks") == [(0,)]


async def test_who_is_gone_is_told_no_more(hooks: Penstock, receiver: Receiver) -> None:
    new = await hooks.agents.webhooks.add(receiver.url)
    receiver.behaviours = [answering(410)]
    result = result_of(await deliver(hooks, new.webhook.id))
    assert (result["reason"], result["statusCode"]) == ("webhook_disabled", 410)
    assert rows(hooks, "SELECT is_enabled, disabled_for FROM agents_webhooks") == [(0, "gone")]
    await deliver(hooks, new.webhook.id)
    assert len(receiver.got) == 1


async def fail_at(app: Penstock, clock: FakeClock, webhook_id: str, *hours: float) -> None:
    """Have one request fail at each of these hours."""
    began = clock.now()
    for hour in hours:
        clock.set_wall(began + int(hour * HOUR * 1000))
        await app.agents.webhooks.send(webhook_id, {"hour": hour})
        await drain(app)


async def test_who_fails_often_enough_for_half_a_day_is_disabled_and_its_owner_told(
    hooks: Penstock, receiver: Receiver, clock: FakeClock
) -> None:
    from penstock.alerts.judge import judge_all

    watched = await hooks.agents.webhooks.add(receiver.url, max_failures=3, owner="ann")
    other = await hooks.agents.webhooks.add(receiver.url, topics=["webhook.disabled"])
    receiver.behaviours = [answering(400)] * 2
    await fail_at(hooks, clock, watched.webhook.id, 0, 6)
    assert (await hooks.agents.webhooks.get(watched.webhook.id)).is_enabled
    receiver.behaviours = [answering(400)]
    await fail_at(hooks, clock, watched.webhook.id, 6.5)
    known = await hooks.agents.webhooks.get(watched.webhook.id)
    assert (known.is_enabled, known.disabled_for) == (False, "max_failures_exceeded")
    told = json.loads(receiver.got[-1].body)
    assert receiver.got[-1].headers["X-Webhook-Id"] == other.webhook.id
    assert told["data"] == {"id": watched.webhook.id, "reason": "max_failures_exceeded"}
    [alert] = [one for one in await judge_all(hooks) if one.rule == "webhook_disabled"]
    assert alert.state == "firing"
    assert f"{watched.webhook.id} of ann" in alert.text
    await hooks.agents.webhooks.enable(watched.webhook.id)
    [alert] = [one for one in await judge_all(hooks) if one.rule == "webhook_disabled"]
    assert alert.state == "resolved"


@pytest.mark.parametrize(
    "hours",
    [
        pytest.param((0, 4, 11.9), id="one bad hour after the other, not half a day"),
        pytest.param((0, 13), id="too few"),
        pytest.param((0, 12, 25), id="the first is over a day ago"),
    ],
)
async def test_who_fails_less_than_that_is_not_disabled(
    here: Penstock, receiver: Receiver, clock: FakeClock, hours: tuple[float, ...]
) -> None:
    new = await here.agents.webhooks.add(receiver.url, max_failures=3)
    receiver.behaviours = [answering(400)] * len(hours)
    await fail_at(here, clock, new.webhook.id, *hours)
    assert (await here.agents.webhooks.get(new.webhook.id)).is_enabled


async def test_a_success_in_between_and_a_new_beginning_take_failures_back(
    here: Penstock, receiver: Receiver, clock: FakeClock
) -> None:
    new = await here.agents.webhooks.add(receiver.url, max_failures=2)
    receiver.behaviours = [answering(400), answering(200), answering(400)]
    await fail_at(here, clock, new.webhook.id, 0, 1, 13)
    assert (await here.agents.webhooks.get(new.webhook.id)).is_enabled
    receiver.behaviours = [answering(400)]
    await fail_at(here, clock, new.webhook.id, 12)
    assert not (await here.agents.webhooks.get(new.webhook.id)).is_enabled
    await here.agents.webhooks.enable(new.webhook.id)
    receiver.behaviours = [answering(400)]
    await fail_at(here, clock, new.webhook.id, 0.1)
    assert (await here.agents.webhooks.get(new.webhook.id)).is_enabled


@pytest.mark.parametrize("ordered", [True, False])
async def test_deliveries_keep_their_order_on_request(
    here: Penstock, receiver: Receiver, clock: FakeClock, ordered: bool
) -> None:
    new = await here.agents.webhooks.add(receiver.url, ordered=ordered)
    receiver.behaviours = [answering(500)]
    first = await here.agents.webhooks.send(new.webhook.id, {"n": 1})
    await drain(here)
    second = await here.agents.webhooks.send(new.webhook.id, {"n": 2})
    await drain(here, clock=clock, through=30)
    told = [request.delivery for request in receiver.got]
    late = [first.id, second.id] if ordered else [second.id, first.id]
    assert told == [first.id, *late]


async def test_while_a_secret_is_replaced_both_sign(
    here: Penstock, receiver: Receiver, clock: FakeClock
) -> None:
    clock.set_wall(time.time_ns() // 1_000_000)
    new = await here.agents.webhooks.add(receiver.url)
    fresh = await here.agents.webhooks.rotate(new.webhook.id, overlap=60)
    assert fresh != new.secret
    await deliver(here, new.webhook.id)
    for secret in (new.secret, fresh):
        Webhook(secret).verify(receiver.got[0].body, receiver.got[0].headers)
    clock.advance(61)
    await deliver(here, new.webhook.id)
    Webhook(fresh).verify(receiver.got[1].body, receiver.got[1].headers)
    with pytest.raises(WebhookVerificationError):
        Webhook(new.secret).verify(receiver.got[1].body, receiver.got[1].headers)


@pytest.mark.parametrize(
    "headers",
    [{"Host": "elsewhere"}, {"X-Delivery-Id": "1"}, {"webhook-id": "1"}, {"X-A": "b\r\nX-C: d"}],
)
async def test_headers_of_a_job_never_replace_ours(
    here: Penstock, receiver: Receiver, headers: dict[str, str]
) -> None:
    new = await here.agents.webhooks.add(receiver.url)
    data = {"webhookId": new.webhook.id, "payload": 1, "headers": headers}
    handle = await here.agents.enqueue("webhook-dispatch", data)
    await drain(here)
    assert result_of(await here.get(handle.id))["reason"] == "non_retryable_error"
    assert receiver.got == []
    with pytest.raises(InvalidOption):
        await here.agents.webhooks.add(receiver.url, headers=headers)


async def test_many_deliveries_at_once_are_all_written_down(
    hooks: Penstock, receiver: Receiver
) -> None:
    ids = [(await hooks.agents.webhooks.add(receiver.url)).webhook.id for _ in range(2)]
    for n in range(10):
        for webhook_id in ids:
            await hooks.agents.webhooks.send(webhook_id, {"n": n})
    await drain(hooks)
    counts = rows(hooks, "SELECT success_count FROM agents_webhooks")
    assert counts == [(10,), (10,)]
    assert len({request.delivery for request in receiver.got}) == 20
    assert rows(hooks, "SELECT count(*) FROM agents_webhook_deliveries") == [(20,)]


async def test_a_failure_that_was_written_down_before_its_worker_died_counts_once(
    hooks: Penstock, receiver: Receiver
) -> None:
    new = await hooks.agents.webhooks.add(receiver.url)
    data = DispatchData(webhook_id=new.webhook.id, payload={"n": 1})
    receiver.behaviours = [answering(500), answering(503), answering(500), answering(200)]
    first = a_lease()
    rescued = replace(first, fence=2, rescues=1)
    retried = replace(first, fence=3, rescues=1, attempts=1)
    for lease in (first, rescued, retried):
        with pytest.raises(NotDelivered):
            await dispatch(hooks, data, lease)
    assert [entry[:3] for entry in log_of(hooks)] == [(1, "failed", 503), (2, "failed", 500)]
    assert rows(hooks, "SELECT failure_count FROM agents_webhooks") == [(2,)]
    requeued = replace(first, fence=4)
    assert (await dispatch(hooks, data, requeued)).success
    assert [entry[:2] for entry in log_of(hooks)][2:] == [(3, "success")]
    assert {request.delivery for request in receiver.got} == {first.id}


def a_lease() -> Lease:
    """The right to deliver something, for the first time."""
    nothing: dict[str, Any] = dict.fromkeys(Lease.__struct_fields__)
    told = {"id": new_id(), "fence": 1, "type": "webhook-dispatch", "tenant_id": ""}
    return Lease(**nothing | told | {"attempts": 0, "snoozes": 0, "rescues": 0})
