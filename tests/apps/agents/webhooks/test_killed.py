"""A delivery that is killed half-way and resumed, or published twice, is one delivery."""

import json
from collections.abc import AsyncIterator
from typing import Any, ClassVar

import pytest

from penstock import Penstock
from tests.apps.agents.killing import Play, Stage, twice_and_killed
from tests.apps.agents.raw import rows
from tests.apps.agents.webhooks.conftest import HERE
from tests.apps.agents.webhooks.receiver import Receiver, receiving


class Publishing(Play):
    """An order is paid, which one webhook is told."""

    settings: ClassVar[dict[str, Any]] = {"webhooks": {"allow": HERE}}

    def __init__(self, url: str) -> None:
        self.url = url

    async def given(self, app: Penstock) -> None:
        await app.agents.webhooks.add(self.url, topics=["order.*"], tenant="north")

    async def enqueue(self, app: Penstock) -> None:
        paid = {"order": 7}
        await app.agents.webhooks.publish("order.paid", paid, tenant="north", key="7")

    async def state(self, app: Penstock) -> Any:
        log = rows(
            app,
            "SELECT id, tenant_id, n, attempt, topic, payload, status, status_code, response_body "
            "FROM agents_webhook_deliveries",
        )
        figures = rows(app, "SELECT success_count, failure_count, is_enabled FROM agents_webhooks")
        return log, figures


@pytest.fixture
async def told() -> AsyncIterator[Receiver]:
    async with receiving() as made:
        yield made


@pytest.mark.thorough
async def test_a_delivery_that_is_killed_and_resumed_is_the_same_delivery(
    stage: Stage, told: Receiver
) -> None:
    log, figures = await twice_and_killed(stage, Publishing(told.url))
    [(delivery, tenant, n, attempt, topic, payload, status, code, _)] = log
    assert (tenant, n, attempt, topic, status, code) == (
        "north",
        1,
        1,
        "order.paid",
        "success",
        204,
    )
    assert json.loads(payload)["data"] == {"order": 7}
    assert figures == [(1, 0, 1)]
    # Once, once more before what came of it was written down, and after that never again.
    assert {f"{request.delivery}-1" for request in told.got} == {delivery}
    assert len(told.got) == 4
