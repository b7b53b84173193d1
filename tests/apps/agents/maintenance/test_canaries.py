"""A deletion leaves nothing: canaries in every table, index, stream, archive and file are gone.

They are planted through the doors that people use, and again as rows in every table that an
extension declares. Afterwards the files are read byte by byte, the tables past everything of ours,
and the keys of a Redis one by one.
"""

import re
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, closing
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple
from zipfile import ZipFile

import apsw
import numpy
import psycopg
import pytest
from psycopg import sql
from pyarrow import parquet
from redis import Redis

from penstock import Context, Penstock
from penstock.apps.agents.sessions.records import NewTurn
from penstock.apps.agents.vectors.store import vectors_of
from penstock.config import Settings
from penstock.events.log import EventFilter
from penstock.extension import Table
from penstock.operate.actor import Operator
from penstock.operate.journal import Journal
from penstock.server.access.tokens import Tokens
from penstock.server.access.users import Users
from penstock.store.redis.connect import address_of
from penstock.testing import FakeClock, drain
from tests.events.streams import drain as write_all
from tests.events.streams import fast_path
from tests.support.places import Place, find_place

TENANT = "kestrelton"
PERSON = "wrenfield"
OTHER = "heronbury"
CANARY = re.compile(rb"zanary-[a-z0-9-]+(?=Z)")
"""They end in a letter that nothing which comes after them in a file continues."""
NAMES = (TENANT, PERSON)
PLANTED = (
    *("old-job", "job", "dead-job", "waiting-job", "workspace", "job-metadata", "tag", "key"),
    *("old-event", "event", "session", "turn", "archived-turn", "memory", "webhook", "header"),
    *("schedule", "token", "user", "pause", "agents-memories", "agents-patterns"),
    *("recorder-messages", "recorder-learnings", "events-dead", "agents-webhook-deliveries"),
)
"""Some of the places; beside them, every table has a row of its own."""
WHERE = ("sqlite", "postgres", "valkey", "postgres+redis")
DAY = 86_400
OBJECTS = ("metadata", "headers", "figures", "metrics", "amounts", "contents", "labels", "context")
"""Columns that hold a JSON object; those that end in `_ids` hold a list."""


QUOTA = {"measure": "tokens", "period": "month", "action": "warn", "throttle": "1/s"}
READ: dict[str, dict[str, Any]] = {
    "agents_quotas": QUOTA,
    "agents_usage": {"measure": "tokens"},
    "agents_standings": {"measure": "tokens", "state": "warned"},
}
"""What is looked at all the time, and has to make sense."""


class House(NamedTuple):
    """An application, and where all that it keeps is."""

    app: Penstock
    clock: FakeClock
    folder: Path
    place: Place


@pytest.fixture(params=WHERE)
async def house(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[House]:
    place = find_place(request.param, request)
    async with opened(place, tmp_path, request) as made:
        yield made


@asynccontextmanager
async def opened(
    place: Place, folder: Path, request: pytest.FixtureRequest
) -> AsyncIterator[House]:
    clock = FakeClock("2026-05-10T00:00:00Z")
    tables = f"sqlite:///{folder}/tables.db" if place.kind == "valkey" else None
    stream = request.getfixturevalue("valkey_url") if place.kind == "postgres" else None
    settings = Settings(
        **place.settings,
        tables=tables,
        extension={
            "agents": {"folder": str(folder / "agents"), "schedules": False},
            "events": {"archive": str(folder / "archive"), "stream": stream, "mirror": False},
        },
    )
    named = ["agents", "events", "penstock.apps.recorder.extension:recorder"]
    async with Penstock(settings=settings, extensions=named, clock=clock) as app:

        @app.job(name="loud", max_retries=0)
        async def loud(ctx: Context, said: str, fails: bool = False) -> str:
            ctx.log(said)
            ctx.progress(50, said)
            await ctx.save_checkpoint({"said": said})
            if fails:
                raise ValueError(said)
            return said

        yield House(app, clock, folder, place)


async def plant(house: House, tenant: str, person: str, mark: str) -> None:
    """Leave traces everywhere, each with a canary that says where it was planted."""
    app, agents = house.app, house.app.agents
    loud = app.find_type("loud")

    def canary(where: str) -> str:
        return f"zanary-{mark}-{where}Z"

    def theirs(**options: Any) -> Any:
        return loud.options(
            tenant=tenant,
            created_by=person,
            workspace=canary("workspace"),
            metadata={"note": canary("job-metadata")},
            tags=[canary("tag")],
            **options,
        )

    await theirs(order_key=canary("order"), limit_key=canary("limit")).enqueue(canary("old-job"))
    await agents.enqueue("data-export", {"userId": person}, tenant=tenant)
    await drain(app)
    await app.events.append(
        "told", tenant_id=tenant, person=person, payload={"said": canary("old-event")}
    )
    await ingested(app)
    house.clock.advance(seconds=40 * DAY)
    await app.events.archive(before=house.clock.now())
    await app.events.archive_jobs(before=house.clock.now())

    await app.events.append(
        "told", tenant_id=tenant, person=person, payload={"said": canary("event")}
    )
    await theirs(key=canary("key")).enqueue(canary("job"))
    await theirs().enqueue(canary("dead-job"), fails=True)
    session = await agents.sessions.open(
        tenant=tenant, user=person, metadata={"note": canary("session")}
    )
    await agents.sessions.add(session.id, NewTurn(role="user", content=canary("archived-turn")))
    await agents.sessions.close(session.id)
    await drain(app)
    await agents.enqueue(
        "session-archive", {"sessionIds": [session.id]}, tenant=tenant, created_by=person
    )
    open_session = await agents.sessions.open(tenant=tenant, user=person)
    await agents.sessions.add(open_session.id, NewTurn(role="user", content=canary("turn")))
    await agents.memories.add(f"The word is {canary('memory')}.", tenant=tenant, user=person)
    for namespace in ("memories", "trajectories"):
        await vectors_of(app).rebuild(namespace, tenant)
    await agents.webhooks.add(
        f"https://example.com/{canary('webhook')}",
        tenant=tenant,
        owner=person,
        headers={"X-Note": canary("header")},
    )
    await agents.quotas.set(tenant, "jobs", 1_000_000)
    await agents.enqueue("data-export", {}, tenant=tenant)
    await drain(app)
    await agents.enqueue("data-export", {"userId": person}, tenant=tenant, delay=600)
    await theirs(delay=3_600).enqueue(canary("waiting-job"))
    await plant_rows(app, tenant, person, mark)


async def plant_tenant(house: House) -> None:
    """What only a tenant has: schedules, tokens, users, limits, pauses; and entries about it."""
    app = house.app
    loud = app.find_type("loud").options(tenant=TENANT)
    await app.schedule("often", loud.new("zanary-a-scheduleZ"), every=86_400)
    said = {"said": "zanary-a-waiting-eventZ"}
    await app.events.append("told", tenant_id=TENANT, payload=said)
    scopes: Any = ("read",)
    await Tokens(app.store).create("zanary-a-tokenZ", scopes, by="ann", tenant_id=TENANT)
    await Users(app.store).create("zanary-a-userZ", "long enough", scopes, by="a", tenant_id=TENANT)
    await app.controls.set_limit(tenant=TENANT, concurrency=3)
    await app.controls.pause(tenant=TENANT, reason="zanary-a-pauseZ")
    await app.store.records.put("alert", "zanary-a", f'{{"name": "x", "text": "for {TENANT}"}}')
    await Operator(app, "user:ann").controls.set_limit(tenant=TENANT, concurrency=4)


async def ingested(app: Penstock) -> None:
    """Have what waits in a stream in the log."""
    if app.events.stream is not None:
        async with fast_path(app) as path:
            await write_all(path)


def tables(app: Penstock) -> Iterator[Table]:
    """Every table that says whose its rows are."""
    for extension in app.extensions:
        for table in extension.tables.tables if extension.tables else ():
            if table.tenant is not None and table.name != "events_log":
                yield table


async def plant_rows(app: Penstock, tenant: str, person: str, mark: str) -> None:
    """A row in every table, with a canary in every text."""
    store = app.table_store("agents")
    for extension in app.extensions:
        if extension.tables is not None:
            await store.make(extension.tables)
    known = kinds_of(app)
    for table in tables(app):
        kinds = await store.columns(table)
        row = {
            name: _planted(table, name, tenant, person, f"zanary-{mark}-{table.name}Z")
            for name in kinds
        }
        read = READ.get(table.name, {})
        if table.name == "agents_patterns":
            read = {"exemplar_trajectory_ids": f'["zanary-{mark}-agents-trajectoriesZ"]'}
        await store.put(table, [{**row, **_numbers(known[table.name], table, kinds), **read}])


def _planted(table: Table, column: str, tenant: str, person: str, canary: str) -> Any:
    told = canary.replace("_", "-")
    if column == table.tenant:
        return tenant
    if column == table.person:
        return person
    if column in OBJECTS:
        return f'{{"note": "{told}"}}'
    return f'["{told}"]' if column.endswith("_ids") else told


_numbered = count(30_001)
"""Below what the smallest column holds; nothing else has such numbers."""


def _numbers(known: Mapping[str, str], table: Table, columns: Any) -> dict[str, Any]:
    """The columns that are numbers or bytes, as the database says."""
    found: dict[str, Any] = {}
    for name, kind in known.items():
        if name not in columns:
            continue
        if "INT" in kind.upper() or "REAL" in kind.upper() or "DOUBLE" in kind.upper():
            found[name] = next(_numbered)
        elif kind.upper() in ("BLOB", "BYTEA"):
            found[name] = f"zanary-bytes-{table.name}Z".replace("_", "-").encode()
        elif kind.upper() in ("JSON", "JSONB"):
            found[name] = "{}"
    return found


def kinds_of(app: Penstock) -> dict[str, dict[str, str]]:
    """The types of the columns of every table."""
    url = app.settings.tables or app.settings.url
    if url.startswith("sqlite"):
        asked = (
            "SELECT m.name, c.name, c.type FROM sqlite_master AS m, pragma_table_info(m.name) AS c"
        )
        with closing(apsw.Connection(url.removeprefix("sqlite:///"))) as connection:
            told = list(connection.execute(f"{asked} WHERE m.type = 'table'"))
    else:
        asked = "SELECT table_name, column_name, data_type FROM information_schema.columns"
        with psycopg.connect(url) as server:
            told = server.execute(f"{asked} WHERE table_schema = 'penstock'").fetchall()
    found: dict[str, dict[str, str]] = defaultdict(dict)
    for table, column, kind in told:
        found[table][column] = kind
    return found


async def found_in(house: House) -> dict[str, set[str]]:
    """Where canaries are; names of people and tenants too, but for the audit log, which stays."""
    texts: dict[str, bytes] = {}
    for path in house.folder.rglob("*"):
        if path.is_file():
            texts[str(path.relative_to(house.folder))] = path.read_bytes() + unpacked(path)
    events = await house.app.events.find(EventFilter(limit=10_000))
    texts["bodies of events"] = repr(events).encode()
    found: dict[str, set[str]] = {}
    for place, data in (*texts.items(), *told_by(house)):
        found[place] = {hit.decode() for hit in CANARY.findall(data)}
        if "audit" not in place and ".db" not in place:
            found[place] |= {name for name in NAMES if name.encode() in data}
    return {place: hits for place, hits in found.items() if hits}


async def in_graphs(app: Penstock, folder: Path) -> tuple[set[bytes], bytes]:
    """Memories of the person as graphs of usearch hold them, and all that these hold."""
    store = app.table_store("agents")
    [table] = [each for each in tables(app) if each.name == "agents_vectors"]
    rows = await store.page(table, None, 100, {"user_id": PERSON, "namespace": "memories"})
    held = {numpy.frombuffer(row["vector"], "<f4").astype("<f2").tobytes() for row in rows}
    files = [path.read_bytes() for path in (folder / "agents" / "vectors").glob("*")]
    return held, b"".join(files)


def unpacked(path: Path) -> bytes:
    """What a file that is compressed holds."""
    if path.suffix == ".parquet":
        return repr(parquet.read_table(path).to_pylist()).encode()
    if path.suffix == ".zip":
        with ZipFile(path) as archive:
            return b"".join(archive.read(name) for name in archive.namelist())
    return b""


def told_by(house: House) -> Iterator[tuple[str, bytes]]:
    """All rows of every table, and all values of every key."""
    settings = house.app.settings
    for url in filter(None, (settings.url, settings.tables)):
        if url.startswith("sqlite"):
            yield from _rows_of_sqlite(url.removeprefix("sqlite:///"))
        elif url.startswith("postgres"):
            yield from _rows_of_postgres(url)
        else:
            yield from _keys_of(url)
    if settings.dispatch:
        yield from _keys_of(settings.dispatch)
    stream = house.app.extensions.settings("events").stream
    if stream:
        yield from _keys_of(stream)


def _rows_of_sqlite(path: str) -> Iterator[tuple[str, bytes]]:
    with closing(apsw.Connection(path)) as connection:
        asked = "SELECT name FROM sqlite_master WHERE type = 'table'"
        for (table,) in list(connection.execute(asked)):
            try:
                rows = list(connection.execute(f'SELECT * FROM "{table}"'))
            except apsw.SQLError:
                continue  # a part of an index, which only the index can read
            yield f"table {table}", repr(rows).encode()


def _rows_of_postgres(url: str) -> Iterator[tuple[str, bytes]]:
    asked = "SELECT schemaname, tablename FROM pg_tables WHERE schemaname NOT LIKE ALL(%s)"
    with psycopg.connect(url) as server:
        for schema, table in server.execute(asked, (["pg_%", "information_%"],)).fetchall():
            whole = sql.SQL("SELECT * FROM {}").format(sql.Identifier(schema, table))
            yield f"table {table}", repr(server.execute(whole).fetchall()).encode()


def _keys_of(url: str) -> Iterator[tuple[str, bytes]]:
    prefix = address_of(url).prefix
    with closing(Redis.from_url(url.partition("?")[0])) as client:
        read = {
            b"string": client.get,
            b"hash": client.hgetall,
            b"list": lambda key: client.lrange(key, 0, -1),
            b"set": client.smembers,
            b"zset": lambda key: client.zrange(key, 0, -1, withscores=True),
            b"stream": client.xrange,
        }
        for key in client.scan_iter(f"{prefix}*", count=1_000):
            told = read[client.type(key)](key)
            yield f"key {key.decode()}", key + repr(told).encode()


@pytest.mark.thorough("postgres", "valkey", "postgres+redis")
async def test_a_deleted_tenant_is_nowhere(house: House) -> None:
    app = house.app
    await plant(house, TENANT, PERSON, "a")
    await plant(house, OTHER, "siskin", "b")
    await plant_tenant(house)
    before = await found_in(house)
    planted = {hit for hits in before.values() for hit in hits}
    assert {f"zanary-a-{where}" for where in PLANTED} <= planted
    others = {hit for hit in planted if hit.startswith("zanary-b-")}
    assert len(others) > 50
    if not str(app.settings.url).startswith("postgres"):
        assert [place for place in before if place.startswith("agents/vectors/")]
    kinds = {suffix for place in before for suffix in (".parquet", ".zip") if suffix in place}
    assert kinds == {".parquet", ".zip"}
    if app.events.stream is not None:
        assert "zanary-a-waiting-event" in str(
            [hits for place, hits in before.items() if "key" in place]
        )

    await app.agents.deletions.request(tenant=TENANT)
    await drain(app, through=60)
    [deletion] = await app.agents.deletions.list()
    assert deletion.status == "done", deletion
    assert deletion.certificate is not None
    assert deletion.certificate.left == {}

    left = await found_in(house)
    theirs = {place: {hit for hit in hits if not _is_others(hit)} for place, hits in left.items()}
    assert {place: hits for place, hits in theirs.items() if hits} == {}
    still = {hit for hits in left.values() for hit in hits}
    assert {hit for hit in others if hit not in still} == set(), "nothing of others is gone"
    assert (await Journal(app.store).verify()).problem is None
    entries = await app.store.audit.page(0)
    assert TENANT in str(entries), "the audit log still says what was done to whom"


@pytest.mark.thorough("postgres", "valkey", "postgres+redis")
async def test_a_deleted_person_is_nowhere(house: House) -> None:
    app = house.app
    await plant(house, TENANT, PERSON, "a")
    await plant(house, TENANT, "siskin", "b")
    held, graphs = await in_graphs(app, house.folder)
    assert held
    if graphs:
        assert all(each in graphs for each in held)
    others = {hit for hits in (await found_in(house)).values() for hit in hits if _is_others(hit)}

    await app.agents.deletions.request(tenant=TENANT, person=PERSON)
    await drain(app, through=60)
    [deletion] = await app.agents.deletions.list()
    assert deletion.status == "done", deletion

    _, graphs = await in_graphs(app, house.folder)
    assert not any(each in graphs for each in held)
    left = await found_in(house)
    theirs = {
        place: {hit for hit in hits if not _is_others(hit) and hit != TENANT}
        for place, hits in left.items()
    }
    theirs = {place: hits for place, hits in theirs.items() if hits}
    nobodys = {f"zanary-a-{each.name}".replace("_", "-") for each in tables(app) if not each.person}
    nobodys -= {"zanary-a-agents-patterns", "zanary-a-agents-classifiers"}
    unexplained = {place: hits - nobodys for place, hits in theirs.items() if hits - nobodys}
    assert unexplained == {}
    still = {hit for hits in left.values() for hit in hits}
    assert {hit for hit in others if hit not in still} <= GONE_WITH_OTHERS
    assert (await Journal(app.store).verify()).problem is None


GONE_WITH_OTHERS = {
    "zanary-b-agents-archives",
    "zanary-b-agents-classifiers",
    "zanary-bytes-agents-classifiers",
}
"""What is of several people, and is made anew without one: a classifier, a half-written archive."""


def _is_others(hit: str) -> bool:
    return hit.startswith("zanary-b-") or "-bytes-" in hit
