"""What belongs to people: exported whole, deleted with proof, kept no longer than they want."""

from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from penstock import Penstock, Settings
from penstock.apps.recorder import privacy as deleting
from penstock.apps.recorder.demo import BUTTONS, QUERY, RETRIES, Step, played
from penstock.apps.recorder.extension import TABLES
from penstock.apps.recorder.privacy import DAY_MS, Choice, Privacy, Published, line_of, retain
from penstock.apps.recorder.reading import SessionNotFound
from penstock.apps.recorder.records import SessionFilter
from penstock.apps.recorder.writing import write
from penstock.events.pool import catch_up
from penstock.events.rebuild import rebuild
from penstock.model.errors import InvalidOption
from penstock.operate.actor import Operator
from penstock.testing.clock import FakeClock
from tests.apps.recorder.sessions import RECORDER, learn, record
from tests.support.places import find_place

pytestmark = pytest.mark.thorough("postgres")

SAID = "The retry budget was reset by every 429"


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["sqlite", "postgres"])
async def app(
    request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path
) -> AsyncIterator[Penstock]:
    place = find_place(request.param, request)
    settings = Settings(url=place.url, extension={"events": {"archive": str(tmp_path / "archive")}})
    async with Penstock(settings=settings, extensions=["events", RECORDER], clock=clock) as made:
        yield made


async def chosen(app: Penstock, name: str) -> deleting.Chosen:
    [found] = [each async for each in Privacy(app).sessions(Choice(session=name))]
    return found


async def exported(app: Penstock, choice: Choice) -> list[dict[str, Any]]:
    return [each async for each in Privacy(app).export(choice)]


async def everything(app: Penstock) -> str:
    """All rows of all tables of events and of the recorder, as one text."""
    parts = []
    for name in ("events", "recorder"):
        tables = app.extensions.find(name).tables.tables  # type: ignore[union-attr]
        for table in tables:
            after: Any = None
            while rows := await app.table_store("tests").page(table, after, 500):
                parts += [str(row) for row in rows]
                after = [rows[-1][column] for column in table.key]
    events = await app.events.find()
    return "\n".join([*parts, *(str(event) for event in events)])


@pytest.mark.quick("postgres")
async def test_a_deleted_session_is_gone_from_every_table_and_another_one_stays(
    app: Penstock,
) -> None:
    gone, kept = await record(app), await record(app, BUTTONS, "s2")
    proof = await Privacy(app).delete(await chosen(app, gone))
    assert proof.complete
    assert proof.erased["recorder_messages"] > 5
    assert proof.erased["events_log"] > 20
    assert set(proof.left.values()) == {0}
    text = await everything(app)
    assert SAID not in text
    assert gone not in text
    assert [row.id for row in await app.recorder.sessions.list()] == [kept]
    assert list(await app.recorder.sessions.search("429")) == []


async def test_not_even_its_bytes_are_left_in_the_file(tmp_path: Path, clock: FakeClock) -> None:
    """An index that only marks what is deleted would still hold its words."""
    path = tmp_path / "work.db"
    async with Penstock(f"sqlite:///{path}", extensions=["events", RECORDER], clock=clock) as app:
        words = Step("prompt", 1, {"prompt": "the walrusinthelagoon sings"})
        session = await record(app, RETRIES._replace(steps=(words, *RETRIES.steps)))
        await learn(app, content="the walrusinthelagoon learns")
        await record(app, BUTTONS, "s2")
        assert b"walrusinthelagoon" in held(path)
        assert (await Privacy(app).delete(await chosen(app, session))).complete
        assert b"walrusinthelagoon" not in held(path)
        assert list(await app.recorder.sessions.search("dark")) != []


def held(path: Path) -> bytes:
    """All bytes of a database and of what is beside it."""
    return b"".join(each.read_bytes() for each in path.parent.glob(f"{path.name}*"))


async def test_no_rebuild_brings_a_deleted_session_back(app: Penstock) -> None:
    gone = await record(app)
    await Privacy(app).delete(await chosen(app, gone))
    for consumer in app.consumer.known().values():
        await rebuild(app, consumer)
    assert await app.recorder.sessions.list() == []


async def test_what_a_hook_tells_again_stays_deleted(app: Penstock, clock: FakeClock) -> None:
    captured = list(played(RETRIES, "s1", clock.now() - 3_600_000))
    await write(app, captured)
    await catch_up(app)
    await Privacy(app).delete(await chosen(app, "s1"))
    await write(app, captured)
    await catch_up(app)
    assert SAID not in await everything(app)


async def test_a_deletion_that_broke_off_goes_on(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await record(app)

    async def broken(*_: Any, **__: Any) -> None:
        raise OSError("the power is gone")

    with monkeypatch.context() as patched:
        patched.setattr(type(app.events), "erase", broken)
        with pytest.raises(OSError, match="power"):
            await Privacy(app).delete(await chosen(app, session))
    again = await chosen(app, session)
    assert (await Privacy(app).delete(again)).complete


async def test_events_of_the_archive_go_along(app: Penstock, clock: FakeClock) -> None:
    session = await record(app)
    clock.advance(seconds=70 * 86_400)
    await catch_up(app)
    assert await app.events.archive(before=clock.now())
    found = await chosen(app, session)
    before = await Privacy(app).left(found)
    assert before["archived events"] > 20
    proof = await Privacy(app).delete(found)
    assert proof.complete
    assert proof.erased["archived events"] == before["archived events"]


async def test_an_export_holds_all_of_a_session_and_a_hash_of_itself(app: Penstock) -> None:
    session = await record(app)
    await record(app, BUTTONS, "s2")
    *documents, manifest = await exported(app, Choice(session=session))
    assert manifest["kind"] == "manifest"
    assert manifest["counts"]["session"] == 1
    assert manifest["counts"]["event"] == sum(d["kind"] == "event" for d in documents) > 20
    assert manifest["sha256"] == sha256(b"".join(map(line_of, documents))).hexdigest()
    text = msgspec.json.encode(documents).decode()
    assert SAID in text
    assert "dark mode" not in text


async def test_sessions_are_chosen_by_project_and_time(app: Penstock, clock: FakeClock) -> None:
    first = await record(app)
    clock.advance(seconds=86_400)
    second = await record(app, BUTTONS, "s2")
    third = await record(app, QUERY, "s3")
    middle = clock.now() - DAY_MS // 2

    async def ids(**choice: Any) -> set[str]:
        return {each.id async for each in Privacy(app).sessions(Choice(**choice))}

    assert await ids(project="shopfront") == {second}
    assert await ids(until=middle) == {first}
    assert await ids(since=middle) == {second, third}
    assert await ids(since=middle, project="reports") == {third}
    assert await ids(session=first[:12]) == {first}
    with pytest.raises(SessionNotFound):
        await ids(session="nobody")
    with pytest.raises(InvalidOption, match="a session, a project or a time"):
        Choice()


async def test_somebody_of_a_tenant_deletes_only_what_is_its_own(app: Penstock) -> None:
    theirs = await record(app, tenant="north")
    await record(app, tenant="south")
    bound = Privacy(app, Operator(app, "user:ann", "north").actor)
    assert [each.id async for each in bound.sessions(Choice(session="s1"))] == [theirs]
    assert [each.id async for each in bound.sessions(Choice(since=0))] == [theirs]


async def test_a_deletion_is_on_record_without_saying_whose(app: Penstock) -> None:
    session = await record(app)
    operator = Operator(app, "user:ann")
    proof = await Privacy(app, operator.actor).delete(await chosen(app, session))
    entries = await app.store.audit.page(0, 100)
    [entry] = [entry for entry in entries if entry.action == "recorder.delete"]
    assert entry.subject == f"session:{proof.session}"
    assert session not in str(entries)


async def test_the_narrowest_rule_says_how_long_a_session_is_kept(
    app: Penstock, clock: FakeClock
) -> None:
    plain, project = await record(app), await record(app, BUTTONS, "s2")
    pinned = await record(app, QUERY, "s3")
    privacy = Privacy(app)
    await privacy.keep(30)
    await privacy.keep(5, project="shopfront")
    await privacy.keep(None, session=pinned)

    async def kept() -> set[str]:
        await retain(app)
        return {row.id for row in await app.recorder.sessions.list(SessionFilter())}

    assert await kept() == {plain, project, pinned}
    clock.advance(seconds=6 * 86_400)
    assert await kept() == {plain, pinned}
    clock.advance(seconds=30 * 86_400)
    assert await kept() == {pinned}
    assert await privacy.forget_rule(session=pinned)
    assert await kept() == set()
    assert {rule.scope for rule in await privacy.rules()} == {"all", "project"}


async def test_what_was_published_is_not_deleted_by_the_way(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await record(app)
    found = await chosen(app, session)

    async def published(*_: Any) -> list[str]:
        return ["l1", "l2"]

    monkeypatch.setattr(Privacy, "published", published)
    with pytest.raises(Published, match=r"has 2 published learnings \(l1 and l2\)"):
        await Privacy(app).delete(found)
    assert (await Privacy(app).delete(found, leave_published=True)).complete


def test_every_table_of_the_recorder_is_asked_what_is_left() -> None:
    """A table that is added has to be deleted from, and asked, or named here with a reason."""
    about_nobody = {
        "recorder_positions": "how far files were read, by hashes of their names",
        "recorder_senders": "nonces of an account",
        "recorder_retention": "rules; that of a session goes with it",
        "recorder_revocations": "goes with its learning, and holds a CID",
    }
    sql = (Path(deleting.__file__).parent / "sql" / "privacy.sql").read_text("utf-8")
    asked = sql.split("-- name: left_of_session")[1].split("-- name:")[0]
    missing = {table.name for table in TABLES.tables if f"'{table.name}'" not in asked}
    assert missing == set(about_nobody)
