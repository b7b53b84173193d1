"""Hooks over HTTP: the same event, told to a server."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI

from penstock import Penstock
from penstock.apps.recorder.hooks_commands import state_of
from penstock.apps.recorder.install import TOOLS, installing, uninstalling
from penstock.config import Settings
from penstock.model.errors import InvalidOption
from penstock.server.app import create_server
from tests.apps.recorder.payloads import told
from tests.server.conftest import TokenMaker, http, make_token  # noqa: F401

WHERE = "/api/recorder/hooks/claude_code"


@pytest.fixture
async def app(tmp_path: Path, empty_home: Path) -> AsyncIterator[Penstock]:
    settings = Settings(url=f"sqlite:///{tmp_path}/work.db", requests_per_minute=0)
    async with Penstock(settings=settings, extensions=["events", "recorder"]) as made:
        yield made


@pytest.fixture
async def server(app: Penstock) -> AsyncIterator[FastAPI]:
    made = create_server(app, trusts_callers=True)
    async with made.router.lifespan_context(made):
        yield made


Http = httpx.AsyncClient


async def test_an_event_is_recorded_and_the_assistant_told_nothing(
    app: Penstock,
    http: Http,  # noqa: F811
) -> None:
    answer = await http.post(WHERE, json=told("claude_code", "UserPromptSubmit"))
    assert (answer.status_code, answer.json()) == (200, {})
    [event] = await app.events.find()
    assert (event.hook_type, event.event_type) == ("UserPromptSubmit", "user_prompt")


async def test_what_is_no_json_leaves_a_stub(app: Penstock, http: Http) -> None:  # noqa: F811
    headers = {"Content-Type": "application/json"}
    answer = await http.post(WHERE, content=b"{ broken", headers=headers)
    assert (answer.status_code, answer.json()) == (200, {})
    [event] = await app.events.find()
    assert "left_out" in event.payload


async def test_an_unknown_assistant_is_refused(http: Http) -> None:  # noqa: F811
    answer = await http.post("/api/recorder/hooks/emacs", json={})
    assert answer.status_code == 422
    assert "claude_code" in answer.json()["detail"]


async def test_a_token_of_a_tenant_records_for_that_tenant(
    app: Penstock,
    http: Http,  # noqa: F811
    make_token: TokenMaker,  # noqa: F811
) -> None:
    bearer = await make_token("record", tenant="north")
    answer = await http.post(WHERE, json=told("claude_code", "Stop"), headers=bearer)
    assert answer.status_code == 200, answer.text
    [event] = await app.events.find()
    assert event.tenant_id == "north"
    reader = await make_token("read")
    refused = await http.post(WHERE, json=told("claude_code", "Stop"), headers=reader)
    assert refused.status_code == 403


def test_settings_name_the_server_for_what_comes_often_and_the_command_for_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty_home: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.setenv("PENSTOCK_TOKEN", "not written down")
    tool, url = TOOLS["claude-code"], "http://127.0.0.1:8000"
    installing(tool, http=url).make()
    file = tmp_path / ".claude" / "settings.json"
    hooks = json.loads(file.read_text())["hooks"]
    [told_by_http] = hooks["PreToolUse"][0]["hooks"]
    assert (told_by_http["type"], told_by_http["url"]) == ("http", url + WHERE)
    assert told_by_http["headers"] == {"Authorization": "Bearer $PENSTOCK_TOKEN"}
    assert hooks["SessionEnd"][0]["hooks"][0]["type"] == "command"
    assert "not written down" not in file.read_text()
    assert state_of(tool).state == "installed"
    installing(tool).make()
    assert "http://" not in file.read_text()
    uninstalling(tool).make()
    assert not file.exists()
    with pytest.raises(InvalidOption, match="for claude-code"):
        installing(TOOLS["codex"], http=url)
