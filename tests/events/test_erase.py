"""What is erased is gone wherever it was, and no rebuild or repetition brings it back."""

from pathlib import Path
from typing import Any

import psycopg
import pytest
import redis
from msgspec.structs import replace

from penstock import Penstock
from penstock.events.consumer import consumer_of
from penstock.events.erase import REASON, ConsumersMissing, Eraser
from penstock.events.event import EventNotFound, InvalidEvent, NewEvent, Session
from penstock.events.log import EventFilter
from penstock.events.pool import catch_up
from penstock.events.rebuild import rebuild
from penstock.model.errors import JobsRunning
from penstock.model.ids import new_id
from penstock.operate.erase import erase
from penstock.store.contract import Claim
from penstock.testing.clock import FakeClock
from proof.tally import Tally, totals
from tests.events.streams import (
    Others,
    drain,
    envelope,
    fast_path,
    intake_of,
    letters_of,
    streaming,
)
from tests.support.events import KINDS, NOON, an_event, events_app
from tests.support.places import find_place

pytestmark = pytest.mark.thorough("postgres", "valkey")

OF_ALL = (REASON, "", "", "", "", 9)
SECRET = "the walrus sings at midnight"
S1 = Session("acme", "shop", "s1")


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


async def fill(app: Penstock, text: str = SECRET) -> None:
    """Events of three sessions, two tenants and two persons."""
    whose = [
        ("s1", "acme", "ada"),
        ("s1", "acme", "bob"),
        ("s2", "acme", "ada"),
        ("s1", "beta", "x"),
    ]
    told = [
        an_event(
            session, tenant_id=tenant, person=person, event_id=f"e{n}", timestamp=NOON + n,
            payload={"amount": 1, "text": text}, metadata={"cwd": text},
        )
        for n, (session, tenant, person) in enumerate(whose)
    ]  # fmt: skip
    await app.events.append_many(told)


async def raw(app: Penstock, event_id: str) -> dict[str, Any]:
    """A row of the log as it is."""
    store = app.table_store("events")
    table = app.extensions.find("events").tables.tables[0]  # type: ignore[union-attr]
    rows = await store.page(table, None, 1_000)
    return next(row for row in rows if row["event_id"] == event_id)


@pytest.mark.quick("postgres", "valkey")
async def test_a_session_goes_and_others_stay(app: Penstock, tally: Tally) -> None:
    await fill(app)
    await catch_up(app)
    erased = await app.events.erase(S1)
    assert erased.parts == {"events": 2, "sessions": 1}
    assert {each.event_id for each in await app.events.find(EventFilter(platform="shop"))} == {
        "e2",
        "e3",
    }
    assert set(await totals(app)) == {"acme/shop/s2", "beta/shop/s1"}
    with pytest.raises(EventNotFound):
        await app.events.get("e0")


async def test_a_tombstone_keeps_place_slot_and_id_and_nothing_else(
    app: Penstock, tally: Tally
) -> None:
    await fill(app)
    before = await raw(app, "e0")
    await app.events.erase(S1)
    after = await raw(app, "e0")
    kept = {"sequence", "slot", "event_id", "timestamp", "ingested_at", "priority", "event_type"}
    assert {name: after[name] for name in kept} == {name: before[name] for name in kept}
    assert (after["codec"], after["event_data"], after["session_id"]) == ("erased", b"", "e0")
    assert {after[name] for name in ("person", "cwd")} == {None}


async def test_an_erasure_is_an_event_that_holds_ids_and_a_keyed_hash(app: Penstock) -> None:
    await fill(app)
    await app.events.erase(S1)
    [told] = await app.events.find(EventFilter(event_type="erasure"))
    assert told.payload["what"] == "session"
    assert told.payload["events"] == ["e0", "e1"]
    assert len(told.payload["subject"]) == 64
    assert "s1" not in str(told.payload["subject"])
    assert told.priority == 1


async def test_what_comes_again_stays_erased(app: Penstock, tally: Tally) -> None:
    await fill(app)
    await app.events.erase(S1)
    again = await app.events.append(
        an_event("s1", tenant_id="acme", event_id="e0", timestamp=NOON, payload={"text": SECRET})
    )
    assert (again.created, again.sequence) == (False, (await raw(app, "e0"))["sequence"])
    await catch_up(app)
    assert "acme/shop/s1" not in await totals(app)


async def test_no_rebuild_brings_it_back(app: Penstock, tally: Tally) -> None:
    await fill(app)
    await catch_up(app)
    await app.events.erase(S1)
    expected = await totals(app)
    await rebuild(app, app.consumer.get("tally"))
    assert await totals(app) == expected
    await rebuild(app, app.consumer.get("tally"), S1)
    assert "acme/shop/s1" not in await totals(app)


async def test_who_has_fetched_it_fetches_again(app: Penstock) -> None:
    class Slow(Tally):
        """Is still preparing when what it was given is erased."""

        async def prepare(self, events: Any) -> Any:  # type: ignore[override]
            if not self.prepared:
                self.prepared.append(len(events))
                await app.events.erase(S1)
            return events

    tally = Slow()
    app.consumer.add(tally.consumer())
    await fill(app)
    await catch_up(app)
    assert tally.prepared == [4]
    assert set(await totals(app)) == {
        "acme/shop/s2",
        "beta/shop/s1",
        "/penstock/" + await erasure(app),
    }


async def test_what_was_fetched_before_makes_no_job_after(app: Penstock) -> None:
    @app.job(name="mail")
    async def mail(text: str) -> None: ...

    class Mailer:
        """Is still preparing when what it was given is erased."""

        erased = False

        async def prepare(self, events: Any) -> Any:
            if not self.erased:
                self.erased = True
                await app.events.erase(S1)
            return events

        def apply(self, tx: Any, events: Any) -> None:
            for event in events:
                tx.enqueue(mail.new(event.event_id), event=event)

    app.consumer(name="mailer", types=["tool_use"])(Mailer)
    await fill(app)
    await catch_up(app)
    assert {job.payload for job in await app.find(limit=9)} == {'{"text":"e2"}', '{"text":"e3"}'}


async def erasure(app: Penstock) -> str:
    """The id of the one erasure."""
    [told] = await app.events.find(EventFilter(event_type="erasure"))
    return told.event_id


async def test_a_person_goes_and_what_others_did_in_their_sessions_stays(
    app: Penstock, tally: Tally
) -> None:
    await fill(app)
    await catch_up(app)
    assert (await erase(app, person="ada")).parts["events"] >= 2
    rows = await totals(app)
    assert set(rows) == {"acme/shop/s1", "beta/shop/s1"}
    assert rows["acme/shop/s1"][:2] == (1, 1)
    assert (await raw(app, "e0"))["person"] is None


async def test_a_tenant_goes_and_its_name_with_it(app: Penstock, tally: Tally) -> None:
    await fill(app)
    await catch_up(app)
    await erase(app, tenant="acme")
    assert set(await totals(app)) == {"beta/shop/s1"}
    assert (await raw(app, "e2"))["tenant_id"] == ""
    assert await app.events.find(EventFilter(tenant="acme")) == []


async def test_tenants_whose_events_have_the_same_ids_and_times_go_one_after_the_other(
    app: Penstock,
) -> None:
    for tenant in ("", "acme", "beta"):
        await app.events.append(an_event(tenant_id=tenant, event_id="e0", timestamp=NOON))
    for tenant in ("acme", "beta"):
        assert (await erase(app, tenant=tenant)).parts["events"] >= 1
    [left] = await app.events.find(EventFilter(event_type="tool_use"))
    assert (left.tenant_id, left.event_id) == ("", "e0")


async def test_jobs_made_of_an_event_go_with_their_payloads(app: Penstock) -> None:
    @app.job(name="mail")
    async def mail(text: str) -> None: ...

    def apply(tx: Any, events: Any) -> None:
        for event in events:
            tx.enqueue(mail.new(event.payload["text"]), event=event)

    app.consumer.add(consumer_of(apply, name="mailer"))
    await fill(app)
    await catch_up(app)
    assert len(await app.find(limit=9)) == 4
    assert (await app.events.erase(S1)).parts == {"events": 2, "jobs": 2}
    assert len(await app.find(limit=9)) == 2


async def test_a_job_that_runs_is_asked_to_stop_and_erased_the_next_time(app: Penstock) -> None:
    @app.job(name="mail")
    async def mail(text: str) -> None: ...

    def apply(tx: Any, events: Any) -> None:
        for event in events:
            tx.enqueue(mail.new(event.payload["text"]), event=event)

    app.consumer.add(consumer_of(apply, name="mailer"))
    await app.events.append(an_event("s1", tenant_id="acme", payload={"text": SECRET}))
    await catch_up(app)
    claim = Claim(owner="w:1", types=["mail"], limit=1, start=1, lease_ms=60_000)
    [lease] = (await app.store.jobs.claim(claim)).leases
    with pytest.raises(JobsRunning):
        await app.events.erase(S1)
    assert await app.events.find(EventFilter(session_id="s1")) == []
    await app.store.upkeep.rescue(owner="w:1")
    assert (await app.events.erase(S1)).parts == {"jobs": 1}
    assert lease.id not in {job.id for job in await app.find(limit=9)}


async def test_dead_letters_and_marks_go(app: Penstock, tally: Tally) -> None:
    tally.poison.add("e0")
    await fill(app)
    await catch_up(app)
    assert (await app.events.erase(S1)).parts["dead letters"] == 1
    counted = await app.read(lambda tx: tx.events.queries.rows("count_dead"))
    asked = {"consumer": None, "mark": None, "limit": 9}
    marked = await app.read(lambda tx: tx.events.queries.rows("marked", asked))
    assert (counted, marked) == ([], [])


async def test_what_was_given_up_of_others_keeps_nothing_from_being_erased(
    app: Penstock, tally: Tally
) -> None:
    @app.job(name="mail")
    async def mail(text: str) -> None: ...

    def apply(tx: Any, events: Any) -> None:
        for event in events:
            tx.enqueue(mail.new(event.payload["text"]), event=event)

    app.consumer.add(consumer_of(apply, name="mailer", types=["tool_use"]))
    tally.poison.add("e1")
    await fill(app)
    await catch_up(app)
    await erase(app, person="ada")
    assert set(await totals(app)) == {"beta/shop/s1"}
    assert [letter.event_id for letter in await app.events.dead.list()] == ["e1"]
    assert await marks(app) == [("tally", "s1", "incomplete", "ValueError: cannot apply e1")]
    assert len(await app.find(limit=9)) == 2


async def test_a_session_that_waits_for_a_replay_waits_on_after_an_erasure(app: Penstock) -> None:
    tally = Tally()
    tally.poison.add("e1")
    app.consumer.add(tally.consumer(failing="wait"))
    await fill(app)
    late = an_event("s1", tenant_id="acme", person="bob", event_id="e9", timestamp=NOON + 9)
    await app.events.append(late)
    await catch_up(app)
    await erase(app, person="ada")
    assert set(await totals(app)) == {"beta/shop/s1"}
    assert [each[1:3] for each in await marks(app)] == [("s1", "waiting")]
    tally.poison.clear()
    [letter] = await app.events.dead.list()
    await app.events.dead.replay(letter.id)
    assert (await totals(app))["acme/shop/s1"][0] == 2


async def test_what_cannot_be_made_anew_is_cleared_and_the_rest_is_erased(
    app: Penstock, tally: Tally
) -> None:
    await fill(app)
    await catch_up(app)
    tally.poison.add("e1")  # it fails now, and did not before
    assert (await erase(app, person="ada")).parts["events"] >= 2
    assert set(await totals(app)) == {"beta/shop/s1"}
    assert [each[:3] for each in await marks(app)] == [("tally", "s1", "behind")]
    assert await app.read(lambda tx: tx.events.queries.rows("reset_marks", OF_ALL)) == []


async def test_a_reset_that_fails_is_told_after_all_else_was_erased(app: Penstock) -> None:
    class Stuck(Tally):
        """Cannot throw away what it derived from a session."""

        stuck = True

        def reset(self, tx: Any, session: Session) -> None:
            if self.stuck and session == S1:
                raise RuntimeError("the table is locked")
            super().reset(tx, session)

    tally = Stuck()
    app.consumer.add(tally.consumer())
    await fill(app)
    await catch_up(app)
    with pytest.raises(RuntimeError, match="locked"):
        await erase(app, person="ada")
    assert set(await totals(app)) == {"acme/shop/s1", "beta/shop/s1"}
    tally.stuck = False
    await erase(app, person="ada")
    assert (await totals(app))["acme/shop/s1"][0] == 1


async def marks(app: Penstock) -> list[tuple[str, str, str, str]]:
    """The sessions that are not as the log says: consumer, session, mark and reason."""
    asked = {"consumer": None, "mark": None, "limit": 9}
    rows = await app.read(lambda tx: tx.events.queries.rows("marked", asked))
    return [(row[0], row[3], row[4], row[5]) for row in rows]


async def test_no_mark_says_what_was_erased(app: Penstock) -> None:
    def apply(tx: Any, events: Any) -> None:
        for event in events:
            if event.event_id == "e0":
                raise ValueError(f"cannot send {event.payload['text']}")

    app.consumer.add(consumer_of(apply, name="mailer"))
    await fill(app)
    await catch_up(app)
    assert SECRET in (await marks(app))[0][3]
    await erase(app, person="ada")
    assert await marks(app) == [("mailer", "s1", "incomplete", "")]


STRICT = "tests.events.test_erase:refusing"


def refusing(event: NewEvent) -> NewEvent:
    """A gate that lets nothing through but what it knows."""
    if event.event_type != "tool_use":
        raise InvalidEvent(event.event_id, f"is of the type {event.event_type}")
    return event


@pytest.mark.parametrize("settings", [{"event_limit": 4_096}, {"gate": STRICT}])
async def test_neither_limits_nor_gates_are_in_the_way_of_an_erasure(
    request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path, settings: dict[str, Any]
) -> None:
    async with events_app("sqlite", request, clock, tmp_path, **settings) as app:
        told = [
            an_event(tenant_id="acme", event_id=f"an id that is not short {n}") for n in range(300)
        ]
        await app.events.append_many([replace(each, timestamp=NOON) for each in told])
        assert (await app.events.erase(S1)).parts["events"] == 300
        erasures = await app.events.find(EventFilter(event_type="erasure"))
        named = [each for erasure in erasures for each in erasure.payload["events"]]
        assert named == [each.event_id for each in told]
        assert (len(erasures) > 1) == ("event_limit" in settings)


async def test_what_a_consumer_unknown_here_derived_refuses_it(
    app: Penstock, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(app)
    await catch_up(app)
    monkeypatch.setattr(app.consumer, "_declared", {})
    with pytest.raises(ConsumersMissing, match="'tally'"):
        await app.events.erase(S1)
    assert len(await app.events.find(EventFilter(session_id="s1", tenant="acme"))) == 2


async def test_an_erasure_that_broke_off_goes_on(
    app: Penstock, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    await fill(app)
    await catch_up(app)

    async def die(_: Eraser) -> int:
        raise OSError("the power went")

    with monkeypatch.context() as patched:
        patched.setattr(Eraser, "drop_letters", die)
        with pytest.raises(OSError, match="power"):
            await app.events.erase(S1)
    marked = await app.read(lambda tx: tx.events.queries.rows("reset_marks", OF_ALL))
    assert len(marked) == 1
    assert (await app.events.erase(S1)).parts == {"sessions": 1}
    assert "acme/shop/s1" not in await totals(app)


@pytest.mark.parametrize("kind", KINDS)
async def test_its_bytes_are_nowhere_on_disk(
    kind: str, request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path
) -> None:
    secret = f"walrus {new_id()} sings"
    async with events_app(kind, request, clock, tmp_path, codec="raw") as app:

        @app.job(name="mail")
        async def mail(text: str) -> None: ...

        def apply(tx: Any, events: Any) -> None:
            for event in events:
                tx.enqueue(mail.new(event.payload["text"]), event=event)

        app.consumer.add(consumer_of(apply, name="mailer"))
        await fill(app, secret)
        await catch_up(app)
        folders = await data_folders(kind, app, tmp_path)
        checkpoint(kind, app)
        assert all(holding(folder, secret) for folder in folders)
        await app.events.erase(Session("acme", "shop", "s2"))
        await app.events.erase(Session("beta", "shop", "s1"))
        assert (await app.events.erase(S1)).remarks == []
        checkpoint(kind, app)
        assert not any(holding(folder, secret) for folder in folders)


async def data_folders(kind: str, app: Penstock, tmp_path: Path) -> list[Path]:
    """Where a store has its files; what PostgreSQL writes ahead is out of reach."""
    if kind == "postgres":
        sql = (
            "SELECT current_setting('data_directory') || '/base/' || oid FROM pg_database "
            "WHERE datname = current_database()"
        )
        with psycopg.connect(app.settings.url.partition("?")[0]) as connection:
            [folder] = connection.execute(sql).fetchone() or ("",)
        return [Path(folder)]
    if kind == "valkey":
        client: Any = redis.Redis.from_url(app.settings.url.partition("?")[0])
        return [tmp_path, Path(client.config_get("dir")["dir"])]
    return [tmp_path]


def checkpoint(kind: str, app: Penstock) -> None:
    """Have a server that writes later do it now."""
    if kind == "postgres":
        url = app.settings.url.partition("?")[0]
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute("CHECKPOINT")


def holding(folder: Path, text: str) -> list[Path]:
    """The files that hold a text."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if text.encode() in path.read_bytes()]


async def test_what_waits_in_spool_and_streams_goes(
    request: pytest.FixtureRequest, valkey_url: str, tmp_path: Path
) -> None:
    async with streaming(find_place("sqlite", request), valkey_url, tmp_path) as app:
        others = Others(valkey_url)
        others.add(*(envelope(n, person="ada" if n == 1 else "bob") for n in range(6)))
        async with fast_path(app) as path:
            await drain(path)
        others.client.xadd(others.key("cdc:events"), {"event_id": "e1", "session_id": "s1"})
        others.client.xadd(others.key("cdc:events"), {"event_id": "e2", "session_id": "s2"})
        others.add(*(envelope(n, person="ada") for n in (7, 8)))
        intake_of(app).spool.append(
            [an_event("s1", platform="claude_code"), an_event("s2", platform="claude_code")]
        )
        erased = await app.events.erase(Session("", "claude_code", "s1"))
        assert erased.parts == {"events": 2, "entries of streams": 3}
        assert (await erase(app, person="ada")).parts == {"events": 1}
        assert [entry["event_id"] for entry in others.entries("cdc:events")] == ["e2"]
        assert others.length() == 0
        intake_of(app).spool.take()
        left = [each for chunk in intake_of(app).spool.events() for each in chunk]
        assert [each.session_id for each in left] == ["s2"]


@pytest.mark.parametrize("bad", [0, 1])
@pytest.mark.parametrize("whose", ["session", "tenant", "person"])
@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_what_ingest_read_before_an_erasure_is_not_written_after_it(
    kind: str, whose: str, bad: int, request: pytest.FixtureRequest, valkey_url: str, tmp_path: Path
) -> None:
    theirs = {"tenant_id": "acme", "person": "ada", "session_id": "s0"}
    async with streaming(find_place(kind, request), valkey_url, tmp_path) as app:
        others = Others(valkey_url)
        async with fast_path(app) as path:
            others.add(envelope(9))
            await drain(path)
            unreadable = [envelope(2, **theirs, payload="{")] * bad
            others.add(envelope(0, **theirs), envelope(1), *unreadable)
            batch = path.prepare(await path.read(), path._erasures)
            assert (len(batch.rows), len(batch.letters)) == (2, bad)
            if whose == "session":
                await app.events.erase(Session("acme", "claude_code", "s0"))
            else:
                await erase(app, **{whose: theirs["tenant_id" if whose == "tenant" else whose]})
            await path.write(batch)
            await path.acknowledge(batch)
            assert others.pending() == 0
        found = await app.events.find(EventFilter(platform="claude_code"))
        assert [event.event_id for event in found] == ["e9", "e1"]
        assert await letters_of(app) == []


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_what_was_erased_while_it_waited_is_known_when_it_comes_again(
    kind: str, request: pytest.FixtureRequest, valkey_url: str, tmp_path: Path
) -> None:
    async with streaming(find_place(kind, request), valkey_url, tmp_path) as app:
        others = Others(valkey_url)
        others.add(envelope(0), envelope(1))
        intake_of(app).spool.append(
            [an_event("s0", platform="claude_code", event_id="spooled", timestamp=NOON)]
        )
        erased = await app.events.erase(Session("", "claude_code", "s0"))
        assert erased.parts == {"entries of streams": 2}
        assert {(await raw(app, name))["codec"] for name in ("e0", "spooled")} == {"erased"}
        [told] = await app.events.find(EventFilter(event_type="erasure"))
        assert sorted(told.payload["events"]) == ["e0", "spooled"]
        others.add(envelope(0))
        async with fast_path(app) as path:
            await drain(path)
        found = await app.events.find(EventFilter(platform="claude_code"))
        assert [event.event_id for event in found] == ["e1"]
        assert others.length() == 0
