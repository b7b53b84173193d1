import pytest

from penstock import JobFailed, JobNotFound, Penstock, Status
from penstock.model.errors import (
    CanariesUnproven,
    IllegalTransition,
    InvalidArguments,
    InvalidOption,
    UnknownType,
)
from penstock.model.not_found import GroupNotFound
from penstock.operate.dead import LetterFields
from penstock.store.contract import DeadGroup, Resolution
from penstock.testing import FakeClock, drain
from proof.conformance.build import dead_job, enqueue
from tests.support.places import Place, on_any_store

pytestmark = pytest.mark.thorough("postgres", "valkey")


class Shop:
    """An application whose deliveries fail until `broken` is empty."""

    def __init__(self, app: Penstock) -> None:
        self.app = app
        self.broken: dict[str, Exception] = {}
        self.done: list[str] = []

        @app.job(max_retries=0)
        async def deliver(order: str, copies: int = 1) -> str:
            if order in self.broken:
                raise self.broken[order]
            self.done.append(order)
            return order * copies

        self.deliver = deliver

    async def dies(self, *orders: str) -> DeadGroup:
        """Enqueue orders that die of the same error; their group."""
        for order in orders:
            self.broken[order] = ConnectionError(f"order {order} was lost")
            await self.deliver.enqueue(order)
            await drain(self.app)
        return (await self.app.dead.groups())[0]

    def mend(self) -> None:
        self.broken.clear()


@pytest.fixture
def shop(app: Penstock) -> Shop:
    return Shop(app)


async def payloads(app: Penstock, ids: list[str]) -> list[str]:
    return [(await app.get(job_id)).payload for job_id in ids]


@pytest.mark.quick("postgres", "valkey")
async def test_orders_that_died_alike_are_one_group(shop: Shop) -> None:
    group = await shop.dies("a-1", "b-2", "c-3")
    assert (group.count, group.open, group.error_code) == (3, 3, "ConnectionError")
    assert len(await shop.app.dead.groups()) == 1
    assert len(await shop.app.dead.find(group=group.id)) == 3


async def in_many_states(app: Penstock, clock: FakeClock) -> dict[str, str]:
    """Dead letters by what is special about them; all but the last died ten days ago."""
    store = app.store
    ids = {name: await dead_job(store, type="mail") for name in ("open", "resolved", "requeued")}
    ids["ignored"] = await dead_job(store, type="bill", tenant_id="acme")
    await store.dead.resolve([ids["resolved"]], Resolution.RESOLVED, notes=None, by=None)
    await store.dead.resolve([ids["ignored"]], Resolution.IGNORED, notes=None, by=None)
    await store.jobs.requeue([ids["requeued"]])
    clock.advance(10 * 86_400)
    return ids | {"new": await dead_job(store, type="mail")}


FILTERS: list[tuple[LetterFields, set[str]]] = [
    ({"type_name": "mail"}, {"open", "resolved", "new"}),
    ({"resolution": "resolved"}, {"resolved"}),
    ({"resolution": "open", "older_than": 86_400}, {"open"}),
    ({"older_than": 86_400}, {"open", "resolved", "ignored"}),
    ({"tenant": "acme"}, {"ignored"}),
    ({"resolution": "any"}, {"open", "resolved", "ignored", "new"}),
    ({"type_name": "none of it"}, set()),
]


async def test_letters_are_counted_and_purged_by_a_filter(place: Place) -> None:
    clock = FakeClock()
    async with Penstock(**place.settings, clock=clock) as app:
        ids = await in_many_states(app, clock)
        for where, names in FILTERS:
            found = await app.dead.matching(**where)
            assert set(found) == {ids[name] for name in names}
            assert await app.dead.count(**where) == len(names)
        assert await app.dead.purge(type_name="mail", older_than=86_400) == 2
        left = await app.store.reader.get(list(ids.values()))
        assert {job.id for job in left} == {ids["requeued"], ids["ignored"], ids["new"]}


async def test_a_filter_that_says_nothing_purges_nothing(shop: Shop) -> None:
    await shop.dies("a")
    with pytest.raises(InvalidOption, match="at least one of: type_name"):
        await shop.app.dead.purge()
    with pytest.raises(InvalidOption, match="at least one of: type_name"):
        await shop.app.dead.purge(type_name=None)
    with pytest.raises(InvalidOption, match="'older_than'"):
        await shop.app.dead.purge(older_than=-1)
    with pytest.raises(InvalidOption, match="'resolution'"):
        await shop.app.dead.purge(resolution="gone")
    assert len(await shop.app.store.dead.find()) == 1


async def test_a_group_answers_to_an_unmistakable_beginning_of_its_id(shop: Shop) -> None:
    group = await shop.dies("a")
    assert (await shop.app.dead.group(group.id[:4].upper())).id == group.id
    for unknown in ("", "zz", group.id + "0"):
        with pytest.raises(GroupNotFound, match="penstock dead groups"):
            await shop.app.dead.group(unknown)


async def test_a_beginning_that_two_groups_share_names_them(app: Penstock) -> None:
    # Groups are hashed by type: of seventeen types, two share their first letter.
    for number in range(17):
        await dead_job(app.store, type=f"type-{number}")
    first = [group.id[0] for group in await app.dead.groups()]
    shared = next(letter for letter in first if first.count(letter) > 1)
    with pytest.raises(GroupNotFound) as refused:
        await app.dead.group(shared)
    assert len(refused.value.known) == first.count(shared)


async def test_a_letter_is_shown_with_its_group_and_its_traceback(shop: Shop) -> None:
    group = await shop.dies("a", "b")
    view = await shop.app.dead.show(group.newest_id)
    assert (view.letter.job_id, view.group.id, view.group.count) == (group.newest_id, group.id, 2)
    assert view.stack is not None
    assert "in deliver" in view.stack
    with pytest.raises(JobNotFound):
        await shop.app.dead.show("01JD0000000000000000000000")


async def test_the_newest_are_replayed_and_remembered(shop: Shop) -> None:
    group = await shop.dies("a", "b", "c", "d")
    shop.mend()
    replay = await shop.app.dead.replay(group.id, canary=2)
    ids = [handle.id for handle in replay.handles]
    assert await payloads(shop.app, ids) == ['{"order":"d"}', '{"order":"c"}']
    assert (await shop.app.dead.canaries(group.id)).unfinished == ids
    await drain(shop.app)
    assert sorted((await shop.app.dead.canaries(group.id)).completed) == sorted(ids)
    assert await replay.handles[0].result() == "d"


async def test_the_rest_is_released_at_a_rate_the_oldest_first(
    shop: Shop, clock: FakeClock
) -> None:
    group = await shop.dies("a", "b", "c", "d", "e")
    shop.mend()
    await shop.app.dead.replay(group.id, canary=2)
    await drain(shop.app)
    answer = await shop.app.dead.release(group.id, "2/s")
    due = [(await shop.app.get(i)).scheduled_at - clock.now() for i in answer.done]
    assert due == [0, 500, 1_000]
    assert await payloads(shop.app, answer.done) == [f'{{"order":"{o}"}}' for o in "abc"]
    await drain(shop.app, through=10)
    assert sorted(shop.done) == list("abcde")
    assert await shop.app.dead.groups() == []


async def test_a_release_waits_for_its_canaries(shop: Shop) -> None:
    group = await shop.dies("a", "b", "c")
    await shop.app.dead.replay(group.id, canary=1)
    with pytest.raises(CanariesUnproven, match="1 have not ended") as refused:
        await shop.app.dead.release(group.id)
    assert len(refused.value.unfinished) == 1
    await drain(shop.app)  # and it dies again
    with pytest.raises(CanariesUnproven, match="1 of its canaries did not complete"):
        await shop.app.dead.release(group.id)
    assert shop.done == []
    forced = await shop.app.dead.release(group.id, None, force=True)
    assert len(forced.done) == 3


async def test_a_canary_that_dies_of_something_else_has_failed_too(shop: Shop) -> None:
    group = await shop.dies("a", "b")
    shop.broken["b"] = ValueError("now this")
    await shop.app.dead.replay(group.id, canary=1)
    await drain(shop.app)
    assert len(await shop.app.dead.groups()) == 2
    assert len((await shop.app.dead.canaries(group.id)).failed) == 1
    with pytest.raises(CanariesUnproven):
        await shop.app.dead.release(group.id)


async def test_a_second_try_takes_the_place_of_the_first(shop: Shop) -> None:
    group = await shop.dies("a", "b", "c")
    await shop.app.dead.replay(group.id, canary=1)
    await drain(shop.app)
    shop.mend()
    replay = await shop.app.dead.replay(group.id, canary=1)
    await drain(shop.app)
    found = await shop.app.dead.canaries(group.id)
    assert (found.completed, found.failed) == ([replay.handles[0].id], [])
    assert len((await shop.app.dead.release(group.id, None)).done) == 2


async def test_a_second_try_forgets_a_canary_that_died_of_something_else(shop: Shop) -> None:
    group = await shop.dies("a", "b", "c")
    shop.broken["c"] = ValueError("now this")
    await shop.app.dead.replay(group.id, canary=1)
    await drain(shop.app)
    shop.mend()
    await shop.app.dead.replay(group.id, canary=1)
    await drain(shop.app)
    assert (await shop.app.dead.canaries(group.id)).failed == []
    assert len((await shop.app.dead.release(group.id)).done) == 1


async def test_canaries_are_remembered_by_the_store_and_not_by_the_process(shop: Shop) -> None:
    group = await shop.dies("a", "b")
    await shop.app.dead.replay(group.id, canary=1)
    other = Penstock(settings=shop.app.settings)
    other.__dict__["store"] = shop.app.store
    with pytest.raises(CanariesUnproven):
        await other.dead.release(group.id)


async def test_waiting_for_canaries_ends_with_them_or_with_the_time(shop: Shop) -> None:
    group = await shop.dies("a", "b")
    shop.mend()
    replay = await shop.app.dead.replay(group.id, canary=1)
    assert (await shop.app.dead.wait(replay, timeout=0.01)).unfinished
    await drain(shop.app)
    assert (await shop.app.dead.wait(replay, timeout=30)).completed == [replay.handles[0].id]


async def test_one_that_is_refused_stops_no_other(app: Penstock) -> None:
    keyed = await dead_job(app.store, key="k")
    free = [await dead_job(app.store) for _ in range(3)]
    [group] = await app.dead.groups()
    lively = await enqueue(app.store, key="k")
    answer = await app.dead.release(group.id, "1000/s")
    assert sorted(answer.done) == sorted(free)
    assert lively in answer.refused[keyed]


async def test_a_refused_canary_is_not_waited_for(app: Penstock) -> None:
    await dead_job(app.store)
    keyed = await dead_job(app.store, key="k")
    [group] = await app.dead.groups()
    await enqueue(app.store, key="k")
    replay = await app.dead.replay(group.id, canary=1)
    assert (replay.handles, list(replay.refused)) == ([], [keyed])
    assert (await app.dead.canaries(group.id)).failed == []


async def test_two_who_replay_at_once_share_their_canaries(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    group = await shop.dies("a", "b")
    seen = (await shop.app.dead.group(group.id)).newest_id
    first = await shop.app.dead.replay(group.id, canary=1)

    async def as_it_was(*_: object, **__: object) -> list[str]:
        return [seen]

    monkeypatch.setattr("penstock.operate.dead.open_ids", as_it_was)
    second = await shop.app.dead.replay(group.id, canary=1)
    assert (second.handles, list(second.refused)) == ([], [seen])
    assert (await shop.app.dead.canaries(group.id)).unfinished == [first.handles[0].id]


async def test_a_large_release_tells_how_far_it_is(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("penstock.operate.jobs.PAGE", 2)
    for _ in range(5):
        await dead_job(app.store)
    [group] = await app.dead.groups()
    seen: list[tuple[int, int]] = []
    answer = await app.dead.release(
        group.id, "10/s", progress=lambda done, of: seen.append((done, of))
    )
    assert seen == [(2, 5), (4, 5), (5, 5)]
    due = [(await app.get(job_id)).scheduled_at for job_id in answer.done]
    assert [after - due[0] for after in due] == [0, 100, 200, 300, 400]


@on_any_store
@pytest.mark.parametrize("rate", ["fast", "0/s", "10", ""])
async def test_a_rate_that_is_none_is_refused(rate: str, shop: Shop) -> None:
    group = await shop.dies("a")
    with pytest.raises(InvalidOption, match="10/s"):
        await shop.app.dead.release(group.id, rate)


@on_any_store
@pytest.mark.parametrize("canary", [0, -1, 1_001])
async def test_a_number_of_canaries_that_makes_no_sense_is_refused(canary: int, shop: Shop) -> None:
    group = await shop.dies("a")
    with pytest.raises(InvalidOption, match="canary"):
        await shop.app.dead.replay(group.id, canary)


async def test_arguments_are_corrected_and_the_others_stay(shop: Shop) -> None:
    shop.broken["a"] = ValueError("no such order")
    job = await shop.deliver.enqueue("a", copies=2)
    await drain(shop.app)
    amended = await shop.app.dead.amend(job.id, {"order": "b"})
    assert (amended.status, amended.payload) == (Status.DEAD_LETTER, '{"order":"b","copies":2}')
    await shop.app.requeue(job.id)
    await drain(shop.app)
    assert await job.result() == "bb"


async def test_all_arguments_are_given_anew_and_the_job_runs(shop: Shop) -> None:
    group = await shop.dies("a")
    amended = await shop.app.dead.amend(group.newest_id, payload='{"order":"z"}', requeue=True)
    assert amended.status is Status.PENDING
    await drain(shop.app)
    assert shop.done == ["z"]


async def test_arguments_that_do_not_fit_change_nothing(shop: Shop) -> None:
    group = await shop.dies("a")
    for arguments, word in (({"copies": "two"}, "copies"), ({"colour": 1}, "colour")):
        with pytest.raises(InvalidArguments, match=word):
            await shop.app.dead.amend(group.newest_id, arguments)
    for payload in ("{}", "[]", "not JSON", '{"order":' + "[" * 200 + "]" * 200 + "}"):
        with pytest.raises(InvalidArguments):
            await shop.app.dead.amend(group.newest_id, payload=payload, requeue=True)
    with pytest.raises(InvalidOption):
        await shop.app.dead.amend(group.newest_id)
    job = await shop.app.get(group.newest_id)
    assert (job.status, job.payload) == (Status.DEAD_LETTER, '{"order":"a"}')


async def test_only_a_job_that_ended_is_amended(shop: Shop) -> None:
    job = await shop.deliver.enqueue("a")
    with pytest.raises(IllegalTransition):
        await shop.app.dead.amend(job.id, {"order": "b"})


async def test_a_type_nobody_knows_cannot_be_checked(app: Penstock) -> None:
    job_id = await dead_job(app.store)
    with pytest.raises(UnknownType):
        await app.dead.amend(job_id, {"a": 1})


async def test_a_whole_group_is_resolved_with_a_note(shop: Shop) -> None:
    group = await shop.dies("a", "b", "c")
    done = await shop.app.dead.resolve(group.id, "ignored", notes="test orders", by="ada")
    assert len(done) == 3
    letters = await shop.app.dead.find(group=group.id)
    assert {(x.resolution, x.notes, x.resolved_by) for x in letters} == {
        (Resolution.IGNORED, "test orders", "ada")
    }
    assert await shop.app.dead.groups() == []
    assert len(await shop.app.dead.groups(closed=True)) == 1


async def test_single_letters_are_resolved(shop: Shop) -> None:
    group = await shop.dies("a", "b")
    assert await shop.app.dead.resolve(group.newest_id, notes="paid back") == [group.newest_id]
    assert await shop.app.dead.resolve([group.newest_id, "01JD"]) == [group.newest_id]
    assert (await shop.app.dead.group(group.id)).open == 1


async def test_the_newest_letters_are_the_last_that_died(shop: Shop) -> None:
    group = await shop.dies("a", "b", "c")
    oldest = (await shop.app.dead.find(group=group.id))[-1].job_id
    await shop.app.requeue(oldest)
    await drain(shop.app)
    with pytest.raises(JobFailed):
        await (await shop.app.handle(oldest)).result()
    replay = await shop.app.dead.replay(group.id, canary=1)
    assert [handle.id for handle in replay.handles] == [oldest]


async def test_a_letter_says_what_its_job_was_corrected_to(shop: Shop) -> None:
    group = await shop.dies("a")
    assert (await shop.app.dead.show(group.newest_id)).amended is None
    await shop.app.dead.amend(group.newest_id, {"order": "b"})
    view = await shop.app.dead.show(group.newest_id)
    assert view.amended == '{"order":"b"}'
    assert '"a"' in view.letter.snapshot


async def test_canaries_are_taken_from_open_letters_of_either_kind(shop: Shop) -> None:
    group = await shop.dies("a", "b", "c")
    newest = [letter.job_id for letter in await shop.app.dead.find(group=group.id)]
    await shop.app.dead.resolve(newest[1], "investigating")
    await shop.app.dead.resolve(newest[0], "ignored")
    replay = await shop.app.dead.replay(group.id, canary=5)
    assert {handle.id for handle in replay.handles} == set(newest[1:])


async def test_a_resolution_that_is_none_is_refused(shop: Shop) -> None:
    group = await shop.dies("a")
    with pytest.raises(InvalidOption, match="investigating"):
        await shop.app.dead.resolve(group.id, "maybe")


async def test_letters_are_found_by_type_resolution_and_place(shop: Shop) -> None:
    store, dead = shop.app.store, shop.app.dead
    ids = [await dead_job(store, type=name) for name in ("a", "b", "a")]
    assert [letter.job_id for letter in await dead.find()] == ids[::-1]
    assert [letter.job_id for letter in await dead.find(type_name="a", limit=1)] == ids[2:]
    assert [letter.job_id for letter in await dead.find(before=ids[1])] == ids[:1]
    await dead.resolve(ids[0], "ignored")
    assert [letter.job_id for letter in await dead.find(resolution="ignored")] == ids[:1]
    assert len(await dead.find(resolution="open")) == 2
    with pytest.raises(InvalidOption, match="'resolution' is 'gone'"):
        await dead.find(resolution="gone")


async def test_a_letter_whose_job_runs_again_is_not_purged(shop: Shop) -> None:
    job_id = await dead_job(shop.app.store, type="a")
    await shop.app.requeue(job_id)
    with pytest.raises(IllegalTransition):
        await shop.app.dead.purge(job_id)
    assert (await shop.app.dead.show(job_id)).letter.job_id == job_id
