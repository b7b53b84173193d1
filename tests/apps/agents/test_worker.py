import os
from collections.abc import AsyncIterator
from typing import Any

import pytest

from penstock import Blueprint, Penstock, Status, Worker
from penstock.apps.agents import worker as workers
from penstock.model.errors import InvalidArguments, InvalidOption, NotIncluded
from penstock.testing import drain, eager, in_memory
from tests.apps.agents import worker_app
from tests.apps.agents.worker_app import Order, OrderData, told


@pytest.fixture
async def app() -> AsyncIterator[Penstock]:
    told.clear()
    with in_memory(worker_app.app):
        yield worker_app.app


async def test_a_job_has_the_fields_of_its_data_at_the_top_and_gives_those_of_its_result(
    app: Penstock,
) -> None:
    job = await Order.enqueue(OrderData(item_name="tea"), tenant="north", workspace="w")
    stored = await job.get()
    assert stored.payload == '{"itemName":"tea","howMany":1,"notes":[]}'
    assert (stored.tenant_id, stored.workspace_id, stored.max_retries) == ("north", "w", 2)
    await drain(app)
    done = await job.get()
    assert done.result == f'{{"itemName":"tea [\'seen\']","doneIn":{os.getpid()}}}'
    assert (await job.result()).item_name == "tea ['seen']"


async def test_hooks_hear_of_one_job_from_its_beginning_to_its_end(app: Penstock) -> None:
    await Order.enqueue(OrderData(item_name="tea"), tenant="north")
    await drain(app)
    progress = {"phase": "ordering", "percent": 40, "batch": 2}
    assert sorted(told, key=str) == sorted(
        [("start", "north"), ("complete", "tea ['seen']"), ("progress", progress)], key=str
    )


async def test_a_default_is_made_anew_for_each_job(app: Penstock) -> None:
    with eager(app):
        for _ in range(2):
            job = await Order.enqueue(OrderData(item_name="tea"))
            assert (await job.result()).item_name == "tea ['seen']"


async def test_elsewhere_a_job_is_enqueued_by_name_with_what_json_has(app: Penstock) -> None:
    job = await app.enqueue_payload("order", '{"itemName": "tea"}')
    await drain(app)
    assert (await job.get()).status is Status.COMPLETED


@pytest.mark.parametrize(
    ("payload", "words"),
    [
        ('{"itemName": 3}', "Argument 'itemName'"),
        ("{}", "Argument 'itemName'"),
        ('{"itemName": "tea", "item_name": "x"}', "item_name"),
    ],
)
async def test_data_that_do_not_fit_are_refused_at_the_door(
    app: Penstock, payload: str, words: str
) -> None:
    with pytest.raises(InvalidArguments, match=words):
        await app.enqueue_payload("order", payload)


async def test_data_that_do_not_go_together_are_refused_at_the_door(app: Penstock) -> None:
    with pytest.raises(InvalidOption, match="howMany"):
        await app.enqueue_payload("order", '{"itemName": "tea", "howMany": 0}')


@pytest.mark.parametrize(
    ("name", "item", "status", "runs"),
    [
        ("order", "bad", 503, 3),  # a server's trouble is tried again
        ("order", "bad", 404, 1),  # as for every type: what is not there will not come
        ("order", "broken", 1, 3),
        ("stubborn", "bad", 503, 1),
        ("eager", "bad", 404, 3),
    ],
)
async def test_a_worker_says_whether_an_error_is_worth_another_try(
    app: Penstock, name: str, item: str, status: int, runs: int
) -> None:
    job = await app.enqueue_payload(name, f'{{"itemName": "{item}", "howMany": {status}}}')
    await drain(app)
    assert (await job.get()).status is Status.DEAD_LETTER
    failures = [each for each in told if each[0] == "failed"]
    assert [each[2] for each in failures] == [True] * (runs - 1) + [False]


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (ConnectionResetError(), True),
        (TimeoutError(), True),
        (worker_app.Temporary(429), True),
        (worker_app.Temporary(500), True),
        (worker_app.Temporary(400), None),
        (ValueError("x"), None),
    ],
)
def test_errors_of_networks_and_servers_are_temporary(error: Exception, expected: Any) -> None:
    assert Order().is_retryable(error) is expected


async def test_a_rescued_job_of_a_class_runs_in_a_process_of_its_own(app: Penstock) -> None:
    job = await Order.enqueue(OrderData(item_name="tea"))
    [lease] = (await app.store.jobs.claim(Worker(app)._claim(1, 1, 0, {}))).leases
    owner = (await job.get()).lease_owner
    await app.store.upkeep.rescue(owner=owner)
    await drain(app)
    done = await job.result()
    assert lease.id == job.id
    assert done.item_name == "tea ['seen']"
    assert done.done_in != os.getpid()


def test_a_class_that_no_application_has_says_so() -> None:
    class Alone(Order):
        name = "alone"
        job_type = None

    with pytest.raises(NotIncluded, match="alone"):
        Alone.new(OrderData(item_name="tea"))


def test_data_must_be_a_record() -> None:
    class Wrong(workers.Worker[dict, None]):  # type: ignore[type-arg, type-var]
        name = "wrong"

        async def process(self, data: Any, ctx: Any) -> None: ...

    with pytest.raises(InvalidOption, match="Struct"):
        workers.add(Blueprint(), Wrong)
