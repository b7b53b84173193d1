"""Cursor's store is read as it is, piece by piece, and left as it was."""

import json
from collections.abc import AsyncIterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw
import pytest

from penstock import Penstock, Settings
from penstock.apps.recorder import conversations, cursor_store
from penstock.apps.recorder.cursor_store import WORKSPACE, take, watch
from penstock.apps.recorder.extension import recorder
from penstock.apps.recorder.reading import Sessions
from penstock.events import EventFilter, catch_up
from penstock.testing import FakeClock
from tests.apps.recorder import goldens
from tests.cli.conftest import Cli, cli, penstock  # noqa: F401

GOLDEN = goldens.load(goldens.FOLDER / "cursor_store.json")
MAKE = "(key TEXT UNIQUE ON CONFLICT REPLACE, value BLOB)"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Cursor's folder, with a global store and that of a workspace."""
    root = tmp_path / "Cursor"
    for place in ("globalStorage", "workspaceStorage/f00"):
        (root / "User" / place).mkdir(parents=True)
        connection = apsw.Connection(str(root / "User" / place / "state.vscdb"))
        connection.execute("PRAGMA journal_mode = WAL").fetchall()
        connection.execute(f"CREATE TABLE ItemTable {MAKE}")
        connection.execute(f"CREATE TABLE cursorDiskKV {MAKE}")
        connection.close()
    return root


@pytest.fixture
async def app(tmp_path: Path, root: Path) -> AsyncIterator[Penstock]:
    settings = Settings(
        url=f"sqlite:///{tmp_path}/work.db", extension={"recorder": {"cursor": str(root)}}
    )
    clock = FakeClock(goldens.NOON + 100_000)
    async with Penstock(settings=settings, extensions=[recorder], clock=clock) as app:
        yield app


def put(path: Path, table: str = "cursorDiskKV", /, **rows: Any) -> None:
    connection = apsw.Connection(str(path))
    for key, value in rows.items():
        sql = f"INSERT INTO {table} VALUES (?, ?)"
        connection.execute(sql, (key, json.dumps(value).encode()))
    connection.close()


def shared(root: Path) -> Path:
    return root / "User" / "globalStorage" / "state.vscdb"


def golden_rows() -> dict[str, Any]:
    return {event["row"]: event["value"] for event in GOLDEN["events"]}


async def test_a_store_becomes_a_conversation(app: Penstock, root: Path) -> None:
    put(shared(root), **golden_rows())
    assert await watch(app) == 0, "what is new may still be written"
    assert await watch(app) == len(GOLDEN["events"])
    assert await watch(app) == 0, "it was taken"
    await catch_up(app, conversations.NAME)
    view = await Sessions(app).get("5a1e")
    assert goldens.lean(view)["turns"] == GOLDEN["conversation"]["turns"]
    texts = [each.content for each in await Sessions(app).messages(view.row.id)]
    assert texts[:3] == ["Rename Cart to Basket.", '{"ok": true}', "Renamed."]


async def test_an_answer_is_taken_when_it_is_whole(app: Penstock, root: Path) -> None:
    bubble = {"type": 2, "text": "Ren", "createdAt": "2026-01-01T12:00:00.000Z", "requestId": "q"}
    for text in ("Ren", "Renam", "Renamed."):
        put(shared(root), **{"bubbleId:c1:b1": {**bubble, "text": text}})
        assert await watch(app) == 0
    assert await watch(app) == 1
    [event] = await app.events.find(EventFilter(platform="cursor"))
    assert event.payload["text"] == "Renamed."


async def test_a_long_store_is_taken_in_batches(
    app: Penstock, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cursor_store, "BATCH", 3)
    bubble = {"type": 1, "createdAt": "2026-01-01T12:00:00.000Z"}
    put(shared(root), **{f"bubbleId:c1:b{n}": {**bubble, "text": f"Do {n}."} for n in range(10)})
    kept = await take(app, str(root), str(shared(root)), waits=False)
    assert (kept.events, kept.messages) == (10, 10)


async def test_what_belongs_to_no_conversation_is_kept_beside_them(
    app: Penstock, root: Path
) -> None:
    path = root / "User" / "workspaceStorage" / "f00" / "state.vscdb"
    put(
        path,
        "ItemTable",
        **{
            "aiService.prompts": [{"text": "Hello", "commandType": 4}],
            "aiService.generations": [
                {"unixMs": goldens.NOON, "generationUUID": "g1", "textDescription": "Hello"}
            ],
            "composer.composerData": {
                "allComposers": [
                    {"composerId": "5a1e", "name": "A name", "createdAt": goldens.NOON}
                ]
            },
            "workbench.other": {"left": "alone"},
        },
    )
    put(shared(root), **{"newKind:5a1e:x": {"secret": "thing"}})
    for _ in range(3):
        await watch(app)
    found = await app.events.find(EventFilter(platform=WORKSPACE))
    told = {event.hook_type: event.payload for event in found}
    assert told["prompt"]["text"] == told["generation"]["text"] == "Hello"
    assert told["unknown"]["key"] == "newKind"
    assert len(found) == 3, "each once, though the keys hold all of them at every look"
    await catch_up(app, conversations.NAME)
    assert [row.title for row in await Sessions(app).list()] == ["A name"]


async def test_the_store_is_left_as_it_was(app: Penstock, root: Path) -> None:
    put(shared(root), **golden_rows())
    before = sha256(shared(root).read_bytes()).hexdigest()
    writer = apsw.Connection(str(shared(root)))
    writer.execute("BEGIN IMMEDIATE; INSERT INTO cursorDiskKV VALUES ('a:b', '1')")
    for _ in range(2):
        await watch(app)
    writer.execute("ROLLBACK")
    writer.close()
    assert len(await app.events.find(EventFilter(session_id="5a1e"))) == len(GOLDEN["events"])
    assert sha256(shared(root).read_bytes()).hexdigest() == before


async def test_a_store_that_is_none_is_passed_over(app: Penstock, root: Path) -> None:
    shared(root).write_bytes(b"not a database at all" * 100)
    workspace = root / "User" / "workspaceStorage" / "f00" / "state.vscdb"
    workspace.unlink()
    workspace.symlink_to("/etc/passwd")
    assert await watch(app) == 0


async def test_nothing_is_watched_unless_somebody_said_so(tmp_path: Path) -> None:
    async with Penstock(f"sqlite:///{tmp_path}/other.db", extensions=[recorder]) as app:
        assert await watch(app) == 0


def test_values_of_unexpected_shapes_are_passed_over() -> None:
    rows = [
        cursor_store.Row(1, key, value)
        for key in ("bubbleId:c:b", "composerData:c", "composer.composerData", "aiService.prompts")
        for value in (b"", b"{", b"[]", b"5", b"null", b"\xff", b'{"allComposers": [5]}', b"[5]")
    ]
    rows += [cursor_store.Row(2, "bubbleId", b"{}"), cursor_store.Row(3, "", b"{}")]
    captured = cursor_store.captured(rows, "/x/state.vscdb", 0, goldens.clean)
    described = [(event.hook_type, event.session_id, event.payload) for event in captured]
    assert described == [
        ("composer", "c", {}),
        ("unknown", "x", {"key": "", "size": 2, "value": {}}),
    ]


def test_a_store_is_imported_by_the_command(root: Path, cli: Cli) -> None:  # noqa: F811
    put(shared(root), **golden_rows())
    answer = cli("recorder", "import", str(shared(root)))
    assert "1 file: 7 events and 5 messages are new." in answer.out, answer.err
