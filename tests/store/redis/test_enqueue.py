"""What a Redis store makes of jobs that are large, many, or strangely named."""

import asyncio
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from msgspec.json import decode

from penstock.model.dependency import Edge
from penstock.model.errors import InvalidOption, ParentNotFound
from penstock.model.ids import new_id
from penstock.model.job import Enqueued, KeyScope
from penstock.model.store_errors import NoTransactions
from penstock.store.redis.enqueue import MAX_BATCH, as_arguments
from penstock.store.redis.store import RedisStore
from proof.conformance.build import (
    OWNER,
    a_claim,
    a_job,
    claim_one,
    completed,
    enqueue,
    job_of,
)
from tests.support.redis_raw import RawKeys

STRANGE = [
    'a "quoted" name',
    "back\\slash",
    "\\",
    '\\"',
    "two\nlines",
    "a/b",
    "Grüße – 你好 🎉",
    "[brackets]",
    "nul\0byte",
    "del\x7f",
    "{tag}",
    " ",
]
DOCUMENTS = [
    "9223372036854775807",
    "0.1000000000000000055511151231257827",
    "[]",
    "{}",
    '"\\u0000"',
    '{"a":[[[[]]]],"b":{},"c":null}',
    "[" * 500 + "]" * 500,
]


@pytest.fixture
async def store(valkey_url: str) -> AsyncIterator[RedisStore]:
    store = RedisStore(valkey_url)
    await store.open()
    yield store
    await store.close()


@pytest.mark.parametrize("name", STRANGE)
async def test_a_lane_may_have_any_name(store: RedisStore, name: str) -> None:
    fields = {"queue": name, "tenant_id": name, "type": name, "limit_key": name, "key": name}
    job_id = await enqueue(store, order_key=name, **fields)
    assert await enqueue(store, **fields) == job_id
    assert await store.jobs.depth(name, 10) == 1
    assert await store.workers.waiting_types() == {name: 1}
    lease = await claim_one(store, types=(name,), queues=(name,))
    assert (lease.queue, lease.tenant_id, lease.type, lease.limit_key) == (name,) * 4
    assert await store.jobs.settle(OWNER, [completed(lease)]) == []
    job = await job_of(store, job_id)
    assert (job.queue, job.tenant_id, job.type, job.limit_key) == (name,) * 4
    assert (job.key, job.key_scope, job.order_key) == (name, KeyScope.UNTIL_DONE, name)
    assert [window.type for window in await store.metrics.window(60_000)] == ["", name]


async def test_a_type_whose_name_begins_like_another_is_another(store: RedisStore) -> None:
    for name in ("work", "work2", 'work"', "wor"):
        await enqueue(store, type=name)
    assert (await claim_one(store, types=("work",))).type == "work"


@pytest.mark.parametrize("text", DOCUMENTS)
async def test_documents_come_back_as_they_were_given(store: RedisStore, text: str) -> None:
    job_id = await enqueue(store, payload=text, metadata=text, trace_context=text)
    lease = await claim_one(store)
    assert (lease.payload, lease.metadata, lease.trace_context) == (text, text, text)
    await store.jobs.settle(OWNER, [completed(lease, text)])
    job = await job_of(store, job_id)
    [execution] = await store.reader.executions(job_id)
    assert (job.payload, job.metadata, job.result, execution.result) == (text,) * 4


async def test_as_many_jobs_as_one_call_may_have_are_all_there(store: RedisStore) -> None:
    jobs = [a_job() for _ in range(MAX_BATCH)]
    answers = await store.jobs.enqueue(jobs)
    assert [answer.id for answer in answers] == [job.id for job in jobs]
    assert all(answer.created for answer in answers)
    assert await store.jobs.depth("default", 2 * MAX_BATCH) == MAX_BATCH
    assert not any(answer.created for answer in await store.jobs.enqueue(jobs))
    assert await store.jobs.depth("default", 2 * MAX_BATCH) == MAX_BATCH


async def test_more_jobs_than_one_call_may_have_are_refused(store: RedisStore) -> None:
    with pytest.raises(InvalidOption, match="at most 10,000 in one call"):
        await store.jobs.enqueue([a_job() for _ in range(MAX_BATCH + 1)])
    assert await store.jobs.depth("default", 1) == 0


async def test_redis_cannot_join_a_transaction(store: RedisStore) -> None:
    with pytest.raises(NoTransactions, match="no transactions"):
        await store.jobs.enqueue([a_job()], connection=object())
    with pytest.raises(NoTransactions):
        store.connection()
    assert (await store.jobs.claim(a_claim())).leases == []


def test_what_jobs_have_in_common_is_sent_once() -> None:
    alike = as_arguments([a_job(payload=str(number)) for number in range(100)])
    assert len(alike) == 1 + 2 * 100
    assert decode(alike[0])["runs"] == [[1, 100]]


async def test_a_thread_enqueues_whatever_an_event_loop_does(store: RedisStore) -> None:
    parent = await enqueue(store)
    jobs = [
        a_job(),
        a_job(key="once"),
        a_job(key="once"),
        a_job(after=(Edge(parent_id=parent),)),
    ]
    answers = await asyncio.to_thread(store.jobs.enqueue_now, jobs)
    assert [answer.created for answer in answers] == [True, True, False, True]
    assert store.jobs.enqueue_now(jobs[:1]) == [Enqueued(jobs[0].id, False)]
    assert (await job_of(store, jobs[3].id)).waiting_on == 1
    assert store.jobs.enqueue_now([]) == []
    with pytest.raises(ParentNotFound):
        store.jobs.enqueue_now([a_job(after=(Edge(parent_id=new_id()),))])


async def test_threads_share_lines_and_a_lost_one_is_replaced(
    store: RedisStore, raw: RawKeys
) -> None:
    with ThreadPoolExecutor(8) as threads:
        made = list(threads.map(lambda _: store.jobs.enqueue_now([a_job()]), range(100)))
    assert len({answer.id for [answer] in made}) == 100
    raw.client.client_kill_filter(_type="normal", skipme=True)
    assert store.jobs.enqueue_now([a_job()])[0].created
