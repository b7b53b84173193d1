"""`after=`: what a call may run after, checked at the call and obeyed by the worker."""

from typing import Any

import msgspec
import pytest

from penstock import Penstock, Status, after
from penstock.model.dependency import Edge, EdgeKind, OnFailure, OnRequeue
from penstock.model.errors import (
    DependencyCycle,
    InvalidArguments,
    InvalidCondition,
    InvalidOption,
    ParentNotFound,
)
from penstock.model.ids import new_id
from penstock.model.not_found import JobNotFound
from penstock.store.contract import JobFilter
from penstock.testing import drain as drain_app
from tests.support.places import on_any_store

pytestmark = pytest.mark.thorough("postgres", "valkey")

GONE = "01JD0000000000000000000000"


class Shop:
    """Handlers that say what they did."""

    def __init__(self, app: Penstock) -> None:
        self.did: list[Any] = []

        @app.job
        async def count(n: int) -> int:
            self.did.append(("count", n))
            if n < 0:
                raise ValueError("below zero")
            return n

        @app.job
        async def add(a: int, b: int = 1, *, note: str = "") -> int:
            self.did.append(("add", a, b))
            return a + b

        @app.job
        async def total(numbers: list[int]) -> int:
            self.did.append(("total", *numbers))
            return sum(numbers)

        @app.job
        async def tell() -> str:
            self.did.append("tell")
            return "told"

        @app.job
        async def keep(**anything: Any) -> None:
            self.did.append(("keep", anything))

        self.count, self.add, self.total, self.tell, self.keep = count, add, total, tell, keep


@pytest.fixture
def shop(app: Penstock) -> Shop:
    return Shop(app)


async def _nothing_was_enqueued(app: Penstock) -> bool:
    return await app.store.reader.find(JobFilter()) == []


@pytest.mark.parametrize("shape", ["handle", "id", "job", "alone"])
@pytest.mark.quick("postgres", "valkey")
async def test_a_job_runs_after_its_parent_in_whatever_shape_it_is_named(
    app: Penstock, drain: Any, shop: Shop, shape: str
) -> None:
    parent = await shop.count.enqueue(1)
    named: Any = {
        "handle": [parent],
        "id": [parent.id],
        "job": [await parent.get()],
        "alone": parent,
    }[shape]
    child = await shop.tell.options(after=named, priority=1).enqueue()
    assert (await child.get()).status is Status.PENDING
    await drain()
    assert shop.did == [("count", 1), "tell"]
    assert await app.store.upkeep.release() == 0


async def test_a_call_that_is_enqueued_with_it_can_be_a_parent(
    app: Penstock, drain: Any, shop: Shop
) -> None:
    parent = shop.count.new(1)
    child = shop.tell.options(after=[parent], priority=1).new()
    await app.enqueue_many([child, parent])
    await drain()
    assert shop.did == [("count", 1), "tell"]


async def test_a_result_becomes_an_argument(drain: Any, shop: Shop) -> None:
    parent = await shop.count.enqueue(41)
    child = await shop.add.options(after=after(parent, data="a")).enqueue(b=2)
    await drain()
    assert await child.result(timeout=5) == 43


async def test_an_optional_argument_can_be_awaited_too(drain: Any, shop: Shop) -> None:
    parent = await shop.count.enqueue(41)
    child = await shop.add.options(after=after(parent, data="b")).enqueue(1)
    await drain()
    assert await child.result(timeout=5) == 42


async def test_several_results_become_a_list_in_the_order_named(drain: Any, shop: Shop) -> None:
    parents = [await shop.count.enqueue(n) for n in (3, 1, 2)]
    awaited = [after(parent, data="numbers") for parent in reversed(parents)]
    child = await shop.total.options(after=awaited).enqueue()
    await drain()
    assert shop.did[-1] == ("total", 2, 1, 3)
    assert await child.result(timeout=5) == 6


async def test_one_result_can_fill_two_arguments(drain: Any, shop: Shop) -> None:
    parent = await shop.count.enqueue(4)
    awaited = [after(parent, data="a"), after(parent, data="b")]
    child = await shop.add.options(after=awaited).enqueue()
    await drain()
    assert await child.result(timeout=5) == 8


async def test_a_handler_with_open_arguments_takes_any_name(drain: Any, shop: Shop) -> None:
    parent = await shop.count.enqueue(4)
    await shop.keep.options(after=after(parent, data="found")).enqueue(given=1)
    await drain()
    assert shop.did[-1] == ("keep", {"given": 1, "found": 4})


@pytest.mark.parametrize(("n", "ran"), [(4, True), (2, False)])
async def test_a_condition_decides_and_may_pass_the_result_on(
    drain: Any, shop: Shop, n: int, ran: bool
) -> None:
    parent = await shop.count.enqueue(n)
    awaited = after(parent, condition="result > 3", data="a")
    child = await shop.add.options(after=awaited).enqueue()
    await drain()
    job = await child.get()
    assert job.status is (Status.COMPLETED if ran else Status.CANCELLED)
    assert (("add", n, 1) in shop.did) is ran


@pytest.mark.parametrize(
    ("policy", "status"),
    [
        ("cancel", Status.CANCELLED),
        ("dead_letter", Status.DEAD_LETTER),
        ("run", Status.COMPLETED),
    ],
)
async def test_the_policy_says_what_a_dead_parent_means(
    drain: Any, shop: Shop, policy: Any, status: Status
) -> None:
    parent = await shop.count.options(max_retries=0).enqueue(-1)
    child = await shop.tell.options(after=after(parent, on_failure=policy)).enqueue()
    await drain()
    assert (await child.get()).status is status


async def test_completion_is_enough_if_that_is_all_it_waits_for(drain: Any, shop: Shop) -> None:
    parent = await shop.count.options(max_retries=0).enqueue(-1)
    child = await shop.tell.options(after=after(parent, when="completion")).enqueue()
    await drain()
    assert await child.result(timeout=5) == "told"


async def test_a_result_that_does_not_fit_is_a_dead_letter_that_names_the_argument(
    app: Penstock, drain: Any, shop: Shop
) -> None:
    parent = await shop.tell.enqueue()
    child = await shop.add.options(after=after(parent, data="a")).enqueue()
    await drain()
    job = await child.get()
    assert (job.status, job.attempts) == (Status.DEAD_LETTER, 1)
    assert "Argument 'a' of job type 'add' is wrong: expected int, got str" in str(job.error)
    assert "a parent's result" in str(job.error)


async def test_the_same_parent_twice_is_one_edge(shop: Shop) -> None:
    parent = await shop.count.enqueue(1)
    call = shop.tell.options(after=[parent, parent.id, after(parent)]).new()
    assert call.job.after == (Edge(parent_id=parent.id),)


async def test_every_choice_arrives_in_the_edge(shop: Shop) -> None:
    parent = await shop.count.enqueue(1)
    awaited = after(parent, data="a", on_failure="run", on_requeue="leave")
    call = shop.add.options(after=awaited).new()
    assert call.job.after == (
        Edge(
            parent_id=parent.id,
            kind=EdgeKind.DATA,
            argument="a",
            on_failure=OnFailure.RUN,
            on_requeue=OnRequeue.LEAVE,
        ),
    )


@pytest.mark.parametrize(
    ("choice", "option"),
    [
        ({"when": "sometimes"}, "when"),
        ({"on_failure": "explode"}, "on_failure"),
        ({"on_requeue": "maybe"}, "on_requeue"),
        ({"data": "not a name"}, "data"),
        ({"data": 3}, "data"),
        ({"when": "completion", "data": "a"}, "when"),
        ({"when": "completion", "condition": "result > 3"}, "when"),
    ],
)
def test_a_choice_that_makes_no_sense_is_refused_at_the_call(choice: Any, option: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        after(GONE, **choice)
    assert refused.value.option == option


@pytest.mark.parametrize(
    "condition", ["", "  ", "result >", "import os", "open('x')", "other > 3", "result.x()", 3]
)
def test_a_condition_that_is_no_expression_on_the_result_is_refused(condition: Any) -> None:
    with pytest.raises(InvalidCondition):
        after(GONE, condition=condition)


@on_any_store
@pytest.mark.parametrize("parent", [None, 3, "", "nonsense", GONE.lower(), object(), [GONE]])
def test_what_is_no_job_is_no_parent(shop: Shop, parent: Any) -> None:
    with pytest.raises(InvalidOption, match="after"):
        shop.tell.options(after=[parent])


def test_one_parent_cannot_be_awaited_in_two_ways_of_one_kind(shop: Shop) -> None:
    with pytest.raises(InvalidOption, match="not in two ways"):
        shop.tell.options(after=[after(GONE), after(GONE, on_failure="run")])
    with pytest.raises(InvalidOption, match="once for the argument 'numbers'"):
        shop.total.options(after=[after(GONE, data="numbers"), after(GONE, data="numbers")])


async def test_an_argument_that_is_given_cannot_be_awaited(app: Penstock, shop: Shop) -> None:
    with pytest.raises(InvalidArguments, match="one given and one from a parent"):
        await shop.add.options(after=after(GONE, data="a")).enqueue(1)
    with pytest.raises(InvalidArguments, match="one given and one from a parent"):
        await app.enqueue_payload("add", '{"a":1}', after=after(GONE, data="a"))
    assert await _nothing_was_enqueued(app)


async def test_an_argument_that_the_handler_does_not_take_cannot_be_awaited(shop: Shop) -> None:
    with pytest.raises(InvalidArguments, match="'c' of job type 'add'"):
        shop.add.options(after=after(GONE, data="c")).new(1)


async def test_the_other_arguments_are_checked_all_the_same(shop: Shop) -> None:
    awaiting = shop.add.options(after=after(GONE, data="b"))
    with pytest.raises(InvalidArguments, match="expected int, got str"):
        awaiting.new("one")
    with pytest.raises(InvalidArguments, match=r"'a' .* got nothing"):
        await awaiting.enqueue()


async def test_an_unknown_parent_refuses_the_whole_call(app: Penstock, shop: Shop) -> None:
    calls = [shop.tell.new(), shop.tell.options(after=[new_id()]).new()]
    with pytest.raises(ParentNotFound, match="enqueue it first"):
        await app.enqueue_many(calls)
    assert await _nothing_was_enqueued(app)


def test_what_a_job_runs_after_is_no_option_of_its_type(app: Penstock) -> None:
    options: Any = {"after": [GONE]}
    with pytest.raises(InvalidOption, match="an option of a call"):
        app.job(**options)(lambda: None)


async def test_a_payload_in_json_can_await_arguments(app: Penstock, drain: Any, shop: Shop) -> None:
    parent = await shop.count.enqueue(1)
    child = await app.enqueue_payload("add", '{"b":5}', after=after(parent, data="a"))
    await drain()
    assert await child.result(timeout=5) == 6


async def test_a_job_that_waits_can_be_given_more_parents(
    app: Penstock, drain: Any, shop: Shop
) -> None:
    first, second = await shop.count.enqueue(1), await shop.count.enqueue(2)
    child = await shop.tell.options(after=first, priority=1).enqueue()
    await app.add_dependency(child, second, after(first, when="completion"))
    found = await app.store.reader.dependencies(child.id)
    assert len(found.parents) == 3
    await drain()
    assert shop.did[-1] == "tell"


async def test_a_cycle_is_refused_with_its_types(app: Penstock, shop: Shop) -> None:
    first = await shop.count.options(delay=60).enqueue(1)
    second = await shop.tell.options(after=first).enqueue()
    with pytest.raises(DependencyCycle) as refused:
        await app.add_dependency(first, second)
    assert f"count {first.id} -> tell {second.id} -> count {first.id}" in str(refused.value)


async def test_adding_a_parent_checks_what_it_is_to_fill(app: Penstock, shop: Shop) -> None:
    parent = await shop.count.enqueue(1)
    child = await shop.add.options(delay=60).enqueue(1)
    with pytest.raises(InvalidArguments, match="one given"):
        await app.add_dependency(child, after(parent, data="a"))
    with pytest.raises(InvalidArguments, match="'c'"):
        await app.add_dependency(child, after(parent, data="c"))
    with pytest.raises(JobNotFound):
        await app.add_dependency(GONE, parent)
    assert (await child.get()).waiting_on == 0


async def test_a_requeued_parent_takes_its_children_along(
    app: Penstock, drain: Any, shop: Shop
) -> None:
    parent = await shop.count.options(max_retries=0).enqueue(-1)
    child = await shop.add.options(after=after(parent, data="a")).enqueue()
    await drain()
    await app.store.jobs.amend(parent.id, '{"n":5}')
    await app.requeue(parent.id)
    await drain_app(app)
    assert await child.result(timeout=5) == 6
    assert msgspec.json.decode((await child.get()).payload) == {"a": 5}
