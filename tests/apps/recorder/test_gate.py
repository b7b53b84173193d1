"""A rule of the user's own is applied on every way in: no way makes a sanitiser for itself."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest

from penstock import Penstock, Settings
from penstock.apps.recorder import cursor_store, demo, hook, telemetry
from penstock.apps.recorder.capture import RULES
from penstock.apps.recorder.captured import conversation_id
from penstock.apps.recorder.extension import recorder
from penstock.apps.recorder.gate import cleaner_of
from penstock.apps.recorder.http_hook import receive_hook
from penstock.apps.recorder.importing import Importer, find
from penstock.apps.recorder.otlp import Record
from penstock.apps.recorder.report import caught
from penstock.testing import drain
from tests.apps.recorder.payloads import told
from tests.apps.recorder.test_git import Repository, looking

OWN = """
[[rules]]
id = "project-name"
type = "PROJECT"
pattern = 'Walrus|webhook'
"""
SAID = "Move Walrus to the new cluster."
LEFT = "Move [REDACTED_PROJECT] to the new cluster."


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    path = tmp_path / "rules.toml"
    path.write_text(OWN)
    return path


def an_app(rules: Path, **more: Any) -> Penstock:
    recorded = {"rules": str(rules), **more}
    settings = Settings(url="sqlite:///:memory:", extension={"recorder": recorded})
    return Penstock(settings=settings, extensions=["events", recorder])


@pytest.fixture
async def app(rules: Path, empty_home: Path) -> AsyncIterator[Penstock]:
    async with an_app(rules) as made:
        yield made


async def texts(app: Penstock, platform: str, session: str) -> list[str]:
    """What was written down of a session."""
    known_as = conversation_id("", platform, session)
    return [each.content for each in await app.recorder.sessions.messages(known_as)]


async def test_in_hooks_over_http(app: Penstock) -> None:
    payload = {**told("claude_code", "UserPromptSubmit"), "session_id": "s1", "prompt": SAID}
    body = json.dumps(payload).encode()
    path = {"platform": "claude_code"}
    request: Any = SimpleNamespace(app=app, path=path, body=body, tenant=None)
    assert await receive_hook(request) == {}
    assert await texts(app, "claude_code", "s1") == [LEFT]


async def test_in_the_hook_which_has_it_from_its_launcher(
    rules: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(RULES, str(rules))
    payload = {**told("claude_code", "UserPromptSubmit"), "prompt": SAID}
    captured, _ = hook.captured_of("claude_code", ["UserPromptSubmit", json.dumps(payload)], 0)
    assert [each.content for each in captured.messages] == [LEFT]


async def test_in_commits(app: Penstock, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    shop = Repository(tmp_path / "shop")
    look = looking(shop, shop.commit("walrus.py", SAID))
    await app.find_type("read_commits").enqueue(look)
    assert (await drain(app)).completed == 1
    [commit] = await app.events.find()
    assert commit.payload["subject"] == LEFT
    assert commit.payload["hash"] == look.after


async def test_in_sessions_of_the_demo(app: Penstock) -> None:
    assert await demo.play(app, days=8)
    assert "project-name" in {each.rule_id for each in await caught(app)}


async def test_in_transcripts(app: Penstock, tmp_path: Path) -> None:
    record = {
        "type": "user",
        "uuid": "u1",
        "sessionId": "s2",
        "timestamp": "2026-11-01T10:00:00Z",
        "message": {"role": "user", "content": SAID},
    }
    (tmp_path / "s2.jsonl").write_text(json.dumps(record) + "\n")
    await Importer(app, processes=1).run(find(str(tmp_path / "s2.jsonl")))
    assert await texts(app, "claude_code", "s2") == [LEFT]


async def test_in_telemetry(app: Penstock) -> None:
    record = Record("claude_code.user_prompt", 1_000, {"session.id": "s3", "prompt": SAID})
    await telemetry._keep(app, [record], None)
    assert await texts(app, "claude_code", "s3") == [LEFT]


async def test_in_the_store_of_cursor(app: Penstock, tmp_path: Path) -> None:
    connection = apsw.Connection(str(tmp_path / "state.vscdb"))
    connection.execute("CREATE TABLE cursorDiskKV (key TEXT, value BLOB)")
    bubble = json.dumps({"type": 1, "text": SAID}).encode()
    connection.execute("INSERT INTO cursorDiskKV VALUES ('bubbleId:c1:b1', ?)", (bubble,))
    connection.close()
    await cursor_store.import_store(app, str(tmp_path / "state.vscdb"))
    assert await texts(app, "cursor", "c1") == [LEFT]


async def test_pseudonyms_differ_between_sessions_and_only_there(
    rules: Path, empty_home: Path
) -> None:
    async with an_app(rules, pseudonyms=True) as app:
        one, same, other = (cleaner_of(app, name)(SAID)[0] for name in ("a", "a", "b"))
    assert one == same != other
    assert "<PROJECT_" in one
