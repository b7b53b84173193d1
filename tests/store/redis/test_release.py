"""The end of a job on Redis: inputs, conditions, refusals without a trace, and the sweep."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.json import decode, encode

from penstock.model.dependency import Edge, with_inputs
from penstock.model.errors import (
    DependencyCycle,
    IllegalTransition,
    KeyTaken,
    ParentNotFound,
    PenstockError,
)
from penstock.model.not_found import JobNotFound
from penstock.model.states import Status
from penstock.store.redis.scripts import Scripts
from penstock.store.redis.store import RedisStore
from proof.conformance.build import (
    NOBODY,
    OWNER,
    a_job,
    an_edge,
    buried,
    claim_all,
    claim_one,
    completed,
    dead_job,
    enqueue,
    enqueue_after,
    job_of,
    running,
    status_of,
)
from tests.support.redis_raw import RawKeys

NAMES = st.sampled_from(["a", "b", "é", 'x"y', "t\n\0", "a/b", "\x7f", "😀"])
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)
BLANKS = st.sampled_from(["", " ", "\n\t", "\r"])
RESULTS = VALUES.map(lambda value: encode(value).decode()) | st.sampled_from(
    ["1e400", "-0.0", "12345678901234567890123", '"\\ud83d\\ude00 \\u0000"']
)
INPUTS = st.lists(st.tuples(NAMES, st.none() | st.integers(0, 20), RESULTS), min_size=1, max_size=4)


@st.composite
def payloads(draw: st.DrawFn) -> str:
    """An object as people may write it: blanks anywhere, escapes in names, a name twice."""
    members = []
    for name, value in draw(st.lists(st.tuples(NAMES, VALUES), max_size=4)):
        spelled = encode(name).decode()
        if draw(st.booleans()):
            spelled = spelled.replace("é", "\\u00e9").replace("a", "\\u0061")
        blanks = [draw(BLANKS) for _ in range(4)]
        members.append(f"{blanks[0]}{spelled}{blanks[1]}:{blanks[2]}{encode(value).decode()}")
        members[-1] += blanks[3]
    return f"{draw(BLANKS)}{{{','.join(members) or draw(BLANKS)}}}{draw(BLANKS)}"


def pictures(raw: RawKeys) -> dict[str, bytes]:
    """Every key with its value, for comparing before with after."""
    return {name: raw.ask("DUMP", name) for name in raw.names()}


@given(payload=payloads(), inputs=INPUTS)
@settings(
    max_examples=60,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
async def test_inputs_are_put_in_as_the_model_does(
    store: RedisStore, payload: str, inputs: list[tuple[str, int | None, str]]
) -> None:
    parents = [a_job(type="parent") for _ in inputs]
    edges = [
        an_edge(parent.id, kind="data", argument=argument, position=position)
        for parent, (argument, position, _) in zip(parents, inputs, strict=True)
    ]
    await store.jobs.enqueue([*parents, a_job(payload=payload, after=tuple(edges))])
    results = {parent.id: result for parent, (_, _, result) in zip(parents, inputs, strict=True)}
    leases = await claim_all(store, types=("parent",))
    await store.jobs.settle(OWNER, [completed(lease, results[lease.id]) for lease in leases])
    child = await claim_one(store)
    assert child.payload == with_inputs(payload, inputs)
    await store.jobs.settle(OWNER, [completed(child)])


@pytest.mark.parametrize("payload", ['{"é', '{"a":1,"value":2', "[1", "7", '{"a":[1}'])
async def test_inputs_of_a_payload_spoilt_by_hand_are_put_in_as_the_model_does(
    store: RedisStore, payload: str
) -> None:
    parent = await running(store)
    await enqueue_after(store, an_edge(parent.id, kind="data", argument="value"), payload=payload)
    await store.jobs.settle(OWNER, [completed(parent, "7")])
    assert (await claim_one(store)).payload == with_inputs(payload, [("value", None, "7")])


class Recorded:
    """Notes the scripts that a store calls, with what they were told was decided."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.answers: list[Any] = []
        self.before_decisions: Callable[[], Awaitable[object]] | None = None
        call = Scripts.call

        async def recorded(
            scripts: Scripts, name: str, *arguments: Any, decisions: str = ""
        ) -> Any:
            if decisions and self.before_decisions is not None:
                step, self.before_decisions = self.before_decisions, None
                await step()
            self.calls.append((name, decode(decisions) if decisions else None))
            self.answers.append(await call(scripts, name, *arguments, decisions=decisions))
            return self.answers[-1]

        monkeypatch.setattr(Scripts, "call", recorded)

    def decisions(self, name: str) -> list[Any]:
        """What one script was told, call by call."""
        return [decided for called, decided in self.calls if called == name]


async def test_children_that_ask_the_same_of_a_result_are_decided_together(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = await running(store)
    asks = an_edge(parent.id, kind="conditional", condition="len(result) > 10")
    await store.jobs.enqueue([a_job(after=(asks,)) for _ in range(200)])
    recorded = Recorded(monkeypatch)
    await store.jobs.settle(OWNER, [completed(parent, f'"{"x" * 100_000}"')])
    told = {parent.id: {"len(result) > 10": ["satisfied", "", ""]}}
    assert recorded.decisions("settle") == [None, told]
    assert len(recorded.answers[0]) == len(("decide", "parent", "condition", "result"))
    assert len(await claim_all(store, limit=500)) == 200


async def test_a_question_is_asked_before_anything_is_written(
    store: RedisStore, raw: RawKeys, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = await running(store)
    other = await running(store, type="other", key="k")
    await enqueue_after(store, an_edge(parent.id, kind="conditional", condition="result > 3"))
    before = pictures(raw)
    recorded = Recorded(monkeypatch)

    async def look() -> None:
        assert pictures(raw) == before

    recorded.before_decisions = look
    assert await store.jobs.settle(OWNER, [buried(other), completed(parent, "7")]) == []
    assert recorded.before_decisions is None


async def test_a_condition_that_comes_while_others_are_decided_is_asked_about_too(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    parent = await running(store)
    first = an_edge(parent.id, kind="conditional", condition="result > 3")
    child, late = await enqueue_after(store, first), await enqueue(store, delay_ms=1)
    recorded = Recorded(monkeypatch)
    more = an_edge(parent.id, kind="conditional", condition="result > 8")
    recorded.before_decisions = lambda: store.jobs.depend(late, [more])
    await store.jobs.settle(OWNER, [completed(parent, "7")])
    assert [len(told[parent.id]) for told in recorded.decisions("settle") if told] == [1, 2]
    assert (await claim_one(store)).id == child
    job = await job_of(store, late)
    assert (job.status, "result > 8" in str(job.error)) == (Status.CANCELLED, True)


async def test_a_condition_on_an_ended_parent_is_decided_when_the_edge_is_made(
    store: RedisStore,
) -> None:
    parent = await running(store)
    await store.jobs.settle(OWNER, [completed(parent, "7")])
    jobs = [
        a_job(after=(an_edge(parent.id, kind="conditional", condition=f"result > {bound}"),))
        for bound in (3, 8)
    ]
    await store.jobs.enqueue(jobs)
    assert await status_of(store, jobs[1].id) is Status.CANCELLED
    assert (await claim_one(store)).id == jobs[0].id


async def _cycle(store: RedisStore) -> None:
    first = await enqueue(store, delay_ms=5_000)
    second = await enqueue_after(store, first)
    await _refused(store, store.jobs.depend(first, [an_edge(second)]), DependencyCycle)


async def _unknown_parent(store: RedisStore) -> None:
    jobs = [a_job(key="k"), a_job(order_key="o"), a_job(after=(an_edge(NOBODY),))]
    await _refused(store, store.jobs.enqueue(jobs), ParentNotFound)


async def _unknown_job(store: RedisStore) -> None:
    waiting = await enqueue(store)
    await _refused(store, store.jobs.cancel([waiting, NOBODY], "no"), JobNotFound)


async def _taken_key(store: RedisStore) -> None:
    dead = await dead_job(store, key="k")
    other = await dead_job(store)
    await enqueue(store, key="k", delay_ms=5_000)
    await _refused(store, store.jobs.requeue([other, dead]), KeyTaken)


async def _key_taken_in_the_same_call(store: RedisStore) -> None:
    dead = [await dead_job(store, key="k"), await dead_job(store, key="k")]
    await _refused(store, store.jobs.requeue(dead), KeyTaken)


async def _twice_in_one_call(store: RedisStore) -> None:
    dead = await dead_job(store)
    await _refused(store, store.jobs.requeue([dead, dead]), IllegalTransition)


async def _refused(
    store: RedisStore, call: Awaitable[object], expected: type[PenstockError]
) -> None:
    raw = RawKeys(store.url)
    before = pictures(raw)
    with pytest.raises(expected):
        await call
    assert pictures(raw) == before
    raw.close()


@pytest.mark.parametrize(
    "way",
    [
        *(_cycle, _unknown_parent, _unknown_job, _taken_key),
        *(_key_taken_in_the_same_call, _twice_in_one_call),
    ],
)
async def test_what_is_refused_leaves_no_trace(
    store: RedisStore, way: Callable[[RedisStore], Awaitable[None]]
) -> None:
    await way(store)


@pytest.mark.parametrize(
    "edge",
    [{}, {"kind": "conditional", "condition": "result == 7"}, {"kind": "data", "argument": "v"}],
)
async def test_the_sweep_closes_edges_to_a_parent_that_ended_behind_the_stores_back(
    store: RedisStore, raw: RawKeys, edge: dict[str, str]
) -> None:
    parent = await enqueue(store, type="other")
    child = await enqueue_after(store, an_edge(parent, **edge))
    raw.ask("HSET", f"job:{parent}", "status", "completed", "result", "7")
    assert await store.upkeep.release() == 1
    assert await store.upkeep.release() == 0
    assert (await claim_one(store)).id == child


async def test_the_sweep_closes_edges_to_a_parent_that_is_gone(
    store: RedisStore, raw: RawKeys
) -> None:
    parent = await enqueue(store, type="other")
    children = {await enqueue_after(store, parent) for _ in range(3)}
    raw.ask("DEL", f"job:{parent}")
    assert await store.upkeep.release() == 3
    assert {lease.id for lease in await claim_all(store)} == children


async def test_the_sweep_looks_at_a_few_parents_at_a_time(
    store: RedisStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    parents = [a_job(type="other") for _ in range(2_000)]
    children = [a_job(after=(Edge(parent_id=parent.id),)) for parent in parents]
    await store.jobs.enqueue([*parents, *children])
    recorded = Recorded(monkeypatch)
    assert await store.upkeep.release() == 0
    assert len(recorded.decisions("sweep")) > 2


async def test_nothing_is_kept_of_a_result_that_was_passed_on(
    store: RedisStore, raw: RawKeys
) -> None:
    parent = await running(store)
    slow = await running(store, type="slow")
    child = await enqueue_after(store, an_edge(parent.id, kind="data", argument="value"), slow.id)
    await store.jobs.settle(OWNER, [completed(parent, "7")])
    assert raw.ask("EXISTS", f"inputs:{child}") == 1
    await store.jobs.settle(OWNER, [completed(slow)])
    assert raw.ask("EXISTS", f"inputs:{child}") == 0
