"""Results that parents pass on: as arguments, and as what a condition looks at."""

import pytest

from penstock.model.states import Status
from penstock.store.contract import Store
from proof.conformance.build import (
    OWNER,
    an_edge,
    buried,
    claim_one,
    completed,
    end,
    enqueue_after,
    job_of,
    running,
    status_of,
)
from proof.conformance.dependencies import Swept

EXACT = [
    "null",
    "true",
    "0",
    "-0.0",
    "12345678901234567890123456789012345678901234567890",
    "0.1",
    "1e400",
    "3.141592653589793238462643383279502884197",
    "1.0",
    '"grüße \\u0000 \\ud83d\\ude00 😀 \\" \\\\"',
    "[]",
    '{"a":[{"b":[[],{}]}],"ä":{"x":1.10}}',
    "[" * 100 + "]" * 100,
    '"' + "x" * 100_000 + '"',
]

TOO_DEEP = 12_000
"""Nesting that no Python decodes, but that PostgreSQL stores.

msgspec stops at 1,000 levels on Python 3.11 and at 10,000 on 3.13; PostgreSQL stops at 16,000.
"""

CONDITIONS = [
    ("result > 3", "4", True),
    ("result > 3", "3", False),
    ("result['total'] >= 100 and result['ok']", '{"total":100,"ok":true}', True),
    ("result.items[0].name == 'ä'", '{"items":[{"name":"ä"}]}', True),
    ("len(result) == 2", "[1,2]", True),
    ("'x' in result", '["x"]', True),
    ("result is None", "null", True),
    ("not result", "[]", True),
    ("result == 12345678901234567890", "12345678901234567890", True),
    ("result['missing'] == 1", "{}", False),
    ("result > 3", '"text"', False),
    ("result[5]", "[1]", False),
    ("result[0][0][0] > 1", "7", False),
    ("len(result) > 1", "7", False),
    ("result > 3", "1e400", False),
    ("result == result", "[" * TOO_DEEP + "]" * TOO_DEEP, False),
]


class TestInputs(Swept):
    """A data edge passes the parent's result on as it is stored."""

    @pytest.mark.parametrize("payload", ["{}", '{"a":{"b":1.50}}', ' { "a" : 1 } '])
    async def test_a_result_arrives_byte_for_byte(self, store: Store, payload: str) -> None:
        given = payload.strip().removesuffix("}").rstrip()
        comma = "" if given == "{" else ","
        for result in EXACT:
            parent = await running(store)
            await enqueue_after(
                store, an_edge(parent.id, kind="data", argument="value"), payload=payload
            )
            await store.jobs.settle(OWNER, [completed(parent, result)])
            lease = await claim_one(store)
            assert lease.payload.strip() == f'{given}{comma}"value":{result}}}'

    async def test_several_parents_make_a_list_in_the_order_asked(self, store: Store) -> None:
        parents = [await running(store) for _ in range(3)]
        edges = [
            an_edge(parent.id, kind="data", argument="values", position=place)
            for parent, place in zip(parents, (2, 0, 1), strict=True)
        ]
        await enqueue_after(store, *edges)
        for number in (1, 0, 2):
            await store.jobs.settle(OWNER, [completed(parents[number], str(number))])
        assert (await claim_one(store)).payload == '{"values":[1,2,0]}'

    async def test_more_than_ten_parents_keep_their_places(self, store: Store) -> None:
        parents = [await running(store) for _ in range(12)]
        await enqueue_after(
            store,
            *(
                an_edge(parent.id, kind="data", argument="values", position=place)
                for place, parent in enumerate(parents)
            ),
        )
        await store.jobs.settle(
            OWNER, [completed(parent, str(n)) for n, parent in enumerate(parents)]
        )
        listed = ",".join(map(str, range(12)))
        assert (await claim_one(store)).payload == f'{{"values":[{listed}]}}'

    async def test_one_result_may_fill_two_arguments(self, store: Store) -> None:
        parent = await running(store)
        edges = [an_edge(parent.id, kind="data", argument=name) for name in ("a", "b")]
        await enqueue_after(store, *edges)
        await store.jobs.settle(OWNER, [completed(parent, "7")])
        assert (await claim_one(store)).payload == '{"a":7,"b":7}'

    async def test_a_failed_parent_whose_child_runs_anyway_passes_null(self, store: Store) -> None:
        parent = await running(store)
        await enqueue_after(
            store, an_edge(parent.id, kind="data", argument="value", on_failure="run")
        )
        await store.jobs.settle(OWNER, [buried(parent)])
        assert (await claim_one(store)).payload == '{"value":null}'

    async def test_a_child_that_comes_back_keeps_its_inputs(self, store: Store) -> None:
        parent = await running(store)
        child = await enqueue_after(store, an_edge(parent.id, kind="data", argument="value"))
        await store.jobs.settle(OWNER, [completed(parent, "7")])
        await end(store, child, buried)
        await store.jobs.requeue([child])
        assert (await claim_one(store)).payload == '{"value":7}'

    async def test_a_restored_child_gets_its_inputs_once(self, store: Store) -> None:
        first, second = await running(store), await running(store, type="other")
        child = await enqueue_after(
            store,
            an_edge(first.id, kind="data", argument="a"),
            an_edge(second.id, kind="data", argument="b"),
        )
        await store.jobs.settle(OWNER, [completed(first, "1")])
        await store.jobs.settle(OWNER, [buried(second)])
        assert await status_of(store, child) is Status.CANCELLED
        await store.jobs.requeue([second.id])
        await end(store, second.id, lambda lease: completed(lease, "2"))
        lease = await claim_one(store)
        assert (lease.id, lease.payload) == (child, '{"a":1,"b":2}')


class TestConditions(Swept):
    """A conditional edge looks at the parent's result."""

    async def test_it_holds_or_it_does_not(self, store: Store) -> None:
        for condition, result, met in CONDITIONS:
            parent = await running(store)
            child = await enqueue_after(
                store, an_edge(parent.id, kind="conditional", condition=condition), type="child"
            )
            await store.jobs.settle(OWNER, [completed(parent, result)])
            await store.upkeep.stage()
            expected = Status.QUEUED if met else Status.CANCELLED
            assert await status_of(store, child) is expected, (condition, result)

    async def test_a_child_whose_condition_is_not_met_says_so(self, store: Store) -> None:
        parent = await running(store)
        child = await enqueue_after(
            store, an_edge(parent.id, kind="conditional", condition="result == 8")
        )
        grandchild = await enqueue_after(store, child)
        await store.jobs.settle(OWNER, [completed(parent, "7")])
        error = str((await job_of(store, child)).error)
        assert parent.id in error
        assert "result == 8" in error
        assert await status_of(store, grandchild) is Status.CANCELLED

    async def test_a_condition_that_is_not_met_ends_as_cancelled_under_any_policy(
        self, store: Store
    ) -> None:
        parent = await running(store)
        children = [
            await enqueue_after(
                store,
                an_edge(parent.id, kind="conditional", condition="result == 8", on_failure=policy),
            )
            for policy in ("cancel", "dead_letter", "run")
        ]
        await store.jobs.settle(OWNER, [completed(parent, "7")])
        for child in children:
            assert await status_of(store, child) is Status.CANCELLED
