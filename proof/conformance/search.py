"""Searching: pages of jobs by all that is known of them, in bounded looks."""

from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from penstock.model.controls import PauseScope
from penstock.model.ids import derived_id
from penstock.model.states import Status
from penstock.store.contract import Found, FoundIds, JobFilter, Store
from penstock.testing.clock import FakeClock
from proof.conformance.build import (
    NOBODY,
    OTHER,
    OWNER,
    a_job,
    buried,
    claim_all,
    completed,
    enqueue,
    enqueue_after,
    failed,
    running,
)

SECOND = 1_000
P = TypeVar("P", Found, FoundIds)


async def _all(store: Store, **where: Any) -> list[str]:
    """The ids on all pages, which are the same whichever way they are asked for.

    Where one page ends and the next begins is nobody's promise: a look ends early on a busy server.
    """
    found = await _pages(store.reader.search, where)
    told = await _pages(store.reader.search_ids, where)
    assert all(len(page.jobs) <= 2 for page in found)
    assert all(len(page.ids) <= 2 for page in told)
    jobs = [job for page in found for job in page.jobs]
    ids = [job_id for page in told for job_id in page.ids]
    assert [job.id for job in jobs] == ids
    assert jobs == await store.reader.get(ids)
    assert len(set(ids)) == len(ids)
    return ids


async def _pages(
    search: Callable[[JobFilter], Awaitable[P]], where: dict[str, Any], limit: int = 2
) -> list[P]:
    pages: list[P] = []
    before = None
    while True:
        page = await search(JobFilter(**where, before=before, limit=limit))
        pages.append(page)
        if page.before is None:
            return pages
        assert page.before != before
        before = page.before


class TestSearch:
    """Whatever a job can be looked for by."""

    async def test_the_newest_come_first(self, store: Store, clock: FakeClock) -> None:
        ids = []
        for _ in range(7):
            ids.append(await enqueue(store))
            clock.advance(seconds=1)
        assert await _all(store) == ids[::-1]

    async def test_an_empty_store_has_one_empty_page(self, store: Store) -> None:
        assert await store.reader.search(JobFilter()) == Found([], None)

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("type", "wanted"),
            ("queue", "wanted"),
            ("category", "wanted"),
            ("tenant_id", "wanted"),
            ("workspace_id", "wanted"),
            ("created_by", "wanted"),
            ("parent_job_id", NOBODY),
            ("schedule_id", NOBODY),
        ],
    )
    async def test_a_filter_finds_only_its_own(self, store: Store, field: str, value: str) -> None:
        ids = []
        for number in range(7):
            job_id = await enqueue(store, **{field: value} if number % 2 else {})
            if number % 2:
                ids.append(job_id)
        assert await _all(store, **{field: value}) == ids[::-1]
        assert await _all(store, **{field: f"{value}x"}) == []

    async def test_a_tag_is_matched_whole(self, store: Store) -> None:
        wanted = await enqueue(store, tags=("red", "blue"))
        await enqueue(store, tags=("bluebell",))
        await enqueue(store)
        assert await _all(store, tag="blue") == [wanted]

    async def test_a_worker_has_what_it_runs_now(self, store: Store) -> None:
        for _ in range(3):
            await enqueue(store)
        [mine, ended] = await claim_all(store, limit=2)
        [other] = await claim_all(store, owner=OTHER)
        await store.jobs.settle(OWNER, [completed(ended)])
        assert await _all(store, lease_owner=OWNER) == [mine.id]
        assert await _all(store, lease_owner=OTHER, statuses=(Status.IN_PROGRESS,)) == [other.id]
        assert await _all(store, lease_owner=OWNER, statuses=(Status.COMPLETED,)) == []

    async def test_filters_narrow_each_other(self, store: Store) -> None:
        parent = await enqueue(store)
        await enqueue(store, parent_job_id=parent, type="x")
        wanted = await enqueue(store, parent_job_id=parent, type="y", queue="a")
        await enqueue(store, parent_job_id=parent, type="y", queue="b")
        assert await _all(store, parent_job_id=parent, type="y", queue="a") == [wanted]

    async def test_pages_go_on_where_a_job_was_deleted(self, store: Store) -> None:
        ids = [await enqueue(store) for _ in range(2)]
        dead = await running(store, type="dead")
        await store.jobs.settle(OWNER, [buried(dead)])
        await enqueue(store)
        await store.dead.purge([dead.id])
        page = await store.reader.search(JobFilter(before=dead.id))
        assert [job.id for job in page.jobs] == ids[::-1]


class TestSearchByStatus:
    """Living jobs and ended ones."""

    @pytest.fixture
    async def by_status(self, store: Store) -> dict[Status, str]:
        """A job in every state."""
        done = await running(store)
        await store.jobs.settle(OWNER, [completed(done)])
        dead = await running(store)
        await store.jobs.settle(OWNER, [buried(dead)])
        retrying = await running(store)
        await store.jobs.settle(OWNER, [failed(retrying)])
        busy = await running(store)
        stopped = await enqueue(store)
        await store.jobs.cancel([stopped], "no")
        paused = await enqueue(store)
        await store.controls.pause(PauseScope.JOB, paused)
        return {
            Status.COMPLETED: done.id,
            Status.DEAD_LETTER: dead.id,
            Status.FAILED: retrying.id,
            Status.IN_PROGRESS: busy.id,
            Status.CANCELLED: stopped,
            Status.PAUSED: paused,
            Status.QUEUED: await enqueue(store),
            Status.PENDING: await enqueue(store, delay_ms=1_000),
        }

    async def test_each_status_is_found(self, store: Store, by_status: dict[Status, str]) -> None:
        for status, job_id in by_status.items():
            assert await _all(store, statuses=(status,)) == [job_id]

    async def test_several_are_found_together(
        self, store: Store, by_status: dict[Status, str]
    ) -> None:
        for wanted in (
            (Status.FAILED, Status.DEAD_LETTER),
            (Status.QUEUED, Status.IN_PROGRESS, Status.PAUSED),
            tuple(Status),
        ):
            expected = sorted((by_status[status] for status in wanted), reverse=True)
            assert await _all(store, statuses=wanted) == expected

    async def test_a_job_that_waits_for_another_is_pending(self, store: Store) -> None:
        parent = await enqueue(store)
        child = await enqueue_after(store, parent)
        assert await _all(store, statuses=(Status.PENDING,)) == [child]

    async def test_a_status_is_narrowed_by_the_rest(
        self, store: Store, by_status: dict[Status, str]
    ) -> None:
        wanted = await enqueue(store, type="other")
        assert await _all(store, statuses=(Status.QUEUED,), type="other") == [wanted]
        queued = [wanted, by_status[Status.QUEUED]]
        assert await _all(store, statuses=(Status.QUEUED,)) == queued


class TestSearchByTime:
    """The time a job was made."""

    async def test_a_time_is_included_where_it_begins_and_not_where_it_ends(
        self, store: Store, clock: FakeClock
    ) -> None:
        ids = []
        began = clock.now()
        for number in range(5):
            ids.append(await enqueue(store, id=derived_id(clock.now(), str(number))))
            clock.advance(seconds=1)
        times = [began + number * SECOND for number in range(5)]
        assert await _all(store, since=times[2]) == ids[:1:-1]
        assert await _all(store, until=times[2]) == ids[1::-1]
        assert await _all(store, since=times[1], until=times[4]) == ids[3:0:-1]
        assert await _all(store, since=times[4] + 1) == []
        assert await _all(store, until=times[0]) == []

    async def test_an_id_made_some_minutes_before_or_after_makes_no_difference(
        self, store: Store, clock: FakeClock
    ) -> None:
        now = clock.now()
        skewed = [derived_id(now + minutes * 60_000, "skewed") for minutes in (-50, 0, 50)]
        for job_id in skewed:
            await enqueue(store, id=job_id)
        assert {*await _all(store, since=now, until=now + 1)} == {*skewed}
        assert await _all(store, since=now + 1) == []

    async def test_days_ahead_and_behind_are_told_apart(
        self, store: Store, clock: FakeClock
    ) -> None:
        ids = []
        for day in range(4):
            ids.append(await enqueue(store, id=derived_id(clock.now(), str(day))))
            clock.advance(seconds=86_400)
        day = 86_400 * SECOND
        began = clock.now() - 4 * day
        assert await _all(store, since=began + day, until=began + 3 * day) == ids[2:0:-1]


class TestSearchInPayloads:
    """Values under dotted paths, compared as JSON."""

    @pytest.mark.parametrize(
        ("payload", "conditions", "found"),
        [
            ('{"user":{"id":7}}', [("user.id", "7")], True),
            ('{"user":{"id":7}}', [("user.id", "8")], False),
            ('{"user":{"id":7}}', [("user", '{"id":7}')], True),
            ('{"user":{"id":7,"x":1}}', [("user", '{"id":7}')], False),
            ('{"user":{"id":7}}', [("id", "7")], False),
            ('{"user": {"id" : 7.0 }}', [("user.id", "7")], True),
            ('{"id":"7"}', [("id", "7")], False),
            ('{"id":7}', [("id", '"7"')], False),
            ('{"id":1000}', [("id", "1e3")], True),
            ('{"id":1e3}', [("id", "1000")], True),
            ('{"id":true}', [("id", "1")], False),
            ('{"id":null}', [("id", "null")], True),
            ("{}", [("id", "null")], False),
            ('{"to":"ann","n":1}', [("to", '"ann"'), ("n", "1")], True),
            ('{"to":"ann","n":1}', [("to", '"ann"'), ("n", "2")], False),
            ('{"to":"Ann"}', [("to", '"ann"')], False),
            ('{"name":"\\u0041da \\"x\\""}', [("name", '"Ada \\"x\\""')], True),
            ('{"tö":"ü"}', [("tö", '"ü"')], True),
            ('{"rows":[{"id":1},{"id":2}]}', [("rows.1.id", "2")], True),
            ('{"rows":[1,2]}', [("rows", "[1,2]")], True),
            ('{"rows":[1,2]}', [("rows", "[2,1]")], False),
            ('{"rows":[1,2]}', [("rows.2", "2")], False),
            ('{"0":1}', [("0", "1")], True),
            ("[1]", [("a", "1")], False),
        ],
    )
    async def test_a_value_is_found_where_it_is_expected(
        self, store: Store, payload: str, conditions: list[tuple[str, str]], found: bool
    ) -> None:
        done = await running(store, payload=payload)
        await store.jobs.settle(OWNER, [completed(done)])
        waiting = await enqueue(store, payload=payload)
        await enqueue(store, payload='{"something":"else"}')
        expected = [waiting, done.id] if found else []
        assert await _all(store, payload=tuple(conditions)) == expected
        ended = await _all(store, payload=tuple(conditions), statuses=(Status.COMPLETED,))
        assert ended == expected[1:]


class TestSearchForText:
    """Words, in whatever case."""

    @pytest.mark.parametrize(
        "fields",
        [
            {"type": "mail.Invoice-17"},
            {"key": "INVOICE-17/a"},
            {"payload": '{"subject":"your invoice-17"}'},
        ],
    )
    async def test_it_is_found_in_any_of_the_fields(
        self, store: Store, fields: dict[str, str]
    ) -> None:
        wanted = await enqueue(store, **fields)
        await enqueue(store, type="mail.invoice", key="17", payload='{"a":"invoice 17"}')
        assert await _all(store, text="Invoice-17") == [wanted]

    async def test_it_is_found_in_an_error_and_in_an_id(self, store: Store) -> None:
        lease = await running(store)
        await store.jobs.settle(OWNER, [failed(lease)])
        await enqueue(store)
        assert await _all(store, text="IT BROKE") == [lease.id]
        assert await _all(store, text=lease.id[8:].lower()) == [lease.id]

    @pytest.mark.parametrize("written", ["straße in köln", "STRASSE IN KÖLN", "Straße In Köln"])
    async def test_letters_beyond_ascii_are_found_in_small_in_capitals_and_as_in_titles(
        self, store: Store, written: str
    ) -> None:
        await enqueue(store, key="strasse in koln")
        wanted = await enqueue(store, payload=f'{{"place":"{written}"}}')
        for asked in ("KÖLN", "köln", "Köln", "IN KÖLN"):
            assert await _all(store, text=asked) == [wanted]

    @pytest.mark.parametrize("text", ["50%", "a_b", "c\\d", "x*y", "q?r", "[e]", "ü ☃"])
    async def test_every_character_stands_for_itself(self, store: Store, text: str) -> None:
        await enqueue(store, key="50x a-b c-d xzy qsr e")
        wanted = await enqueue(store, key=f"so: {text}!")
        assert await _all(store, text=text) == [wanted]


class TestBoundedLooks:
    """A look through many jobs is made in pieces, and none of them is left out."""

    async def test_what_is_rare_is_found_among_many(self, store: Store) -> None:
        first = await enqueue(store, tags=("rare",), payload='{"rare":1}')
        await store.jobs.enqueue([a_job() for _ in range(1_200)])
        last = await enqueue(store, tags=("rare",), payload='{"rare":1}')
        await store.jobs.enqueue([a_job(payload='{"rare":2}') for _ in range(700)])
        assert await _all(store, tag="rare") == [last, first]
        assert await _all(store, payload=(("rare", "1"),)) == [last, first]
        assert await _all(store, tag="rare", statuses=(Status.QUEUED,)) == [last, first]

    async def test_ids_come_in_large_pages(self, store: Store) -> None:
        await store.jobs.enqueue([a_job() for _ in range(3_000)])
        pages = await _pages(store.reader.search_ids, {}, limit=2_500)
        assert sum(len(page.ids) for page in pages) == 3_000
        for page in pages[:-1]:
            assert page.before == page.ids[-1]
