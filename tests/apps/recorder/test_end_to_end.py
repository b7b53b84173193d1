"""From installed hooks to conversation, figures and learnings, on a machine without a network."""

import asyncio
import json
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from penstock import Penstock
from penstock.apps.recorder import home
from penstock.apps.recorder.demo import RETRIES, told
from penstock.events.pool import catch_up
from penstock.testing import drain
from tests.apps.recorder.sessions import RECORDER
from tests.cli.conftest import Cli, cli  # noqa: F401


@pytest.fixture
def user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Cli) -> Path:  # noqa: F811
    """The home of somebody whose settings name no store, on a machine that reaches nobody."""
    monkeypatch.delenv("PENSTOCK_URL")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path / "recorder"))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)

    def refuse(self: socket.socket, address: Any) -> None:
        if self.family != socket.AF_UNIX:
            raise OSError(f"there is no network, and {address} was asked for")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    return tmp_path


def run_hook(settings: dict[str, Any], event: str, payload: dict[str, Any]) -> None:
    """Run what the settings name for an event, as Claude Code does."""
    for group in settings["hooks"].get(event, []):
        for entry in group["hooks"]:
            done = subprocess.run(
                [entry["command"], *entry["args"]],
                input=json.dumps(payload),
                capture_output=True,
                text=True,
                check=True,
                timeout=30,
            )
            assert (done.stdout, done.stderr) == ("", "")


async def work() -> None:
    """What `penstock up` does: consumers, and jobs until there are no more."""
    async with Penstock(home.url(), extensions=["events", RECORDER]) as app:
        for _ in range(3):
            await catch_up(app)
            await drain(app)


def test_a_session_is_recorded_understood_and_learned_from(user: Path, cli: Cli) -> None:  # noqa: F811
    installed = cli("hooks", "install", "claude-code")
    assert installed.code == 0, installed.err
    settings = json.loads((user / ".claude" / "settings.json").read_text("utf-8"))
    begins = time.time_ns() // 1_000_000
    for each in told(RETRIES, "from-end-to-end", begins):
        run_hook(settings, each.event, each.payload)
    asyncio.run(work())

    [session] = cli("recorder", "sessions", "--json").json
    assert (session["platform"], session["session_id"]) == ("claude_code", "from-end-to-end")
    assert (session["turns"], session["tools"], session["failures"]) == (2, 8, 1)
    assert session["status"] == "complete"

    view = cli("recorder", "show", session["id"][:10], "--json").json
    prompts = [turn["prompt"] for turn in view["turns"]]
    assert prompts[0].startswith("The payment webhook retries for ever")
    assert "[REDACTED" in prompts[1]
    assert "north-bakery" not in json.dumps(view)
    assert {change["file_path"] for change in view["changes"]} == {"src/payments/webhook.py"}

    stats = cli("recorder", "stats", "--json").json
    assert (stats["sessions"], stats["turns"]) == (1, 2)
    assert stats["latency"]["Bash"]["count"] == 4

    hits = cli("recorder", "search", "budget", "--json").json
    assert {hit["conversation_id"] for hit in hits} == {session["id"]}

    rules = cli("recorder", "caught", "--json").json
    assert {"email"} <= {rule["category"] for rule in rules}, rules

    learnings = cli("recorder", "learnings", "--json").json
    assert learnings, "nothing was learned"
    assert {each["conversation_id"] for each in learnings} == {session["id"]}
    assert "budget" in json.dumps(learnings)

    proof = cli("recorder", "delete", "--session", session["id"], "--yes", "--json").json
    assert set(proof[0]["left"].values()) == {0}
    assert cli("hooks", "uninstall", "claude-code").code == 0
