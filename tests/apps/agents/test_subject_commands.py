"""`penstock agents …` at the terminal: memories, patterns, webhooks, quotas, exports."""

import asyncio
import stat
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from penstock import Penstock
from penstock.testing import drain
from tests.apps.agents.furnish import TENANT, Furnished, furnish, receiving
from tests.apps.agents.serving import settings
from tests.cli.conftest import Cli, cli  # noqa: F401

T = TypeVar("T")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PENSTOCK_AGENTS__FOLDER", str(tmp_path / "agents"))
    return tmp_path


@pytest.fixture
def have(cli: Cli, folder: Path) -> Furnished:  # noqa: F811
    """A store with something of everything."""

    async def made(app: Penstock) -> Furnished:
        async with receiving() as receiver:
            return await furnish(app, receiver.url)

    return within(folder, made)


def within(folder: Path, work: Callable[[Penstock], Awaitable[T]]) -> T:
    async def run() -> T:
        url = f"sqlite:///{folder / 'work.db'}"
        extensions = ["events", "agents"]
        async with Penstock(url, extensions=extensions, settings=settings(folder)) as app:
            return await work(app)

    return asyncio.run(run())


def test_memories_are_listed_found_edited_merged_and_forgotten(cli: Cli, have: Furnished) -> None:  # noqa: F811
    assert len(cli("agents", "memories", "--json").json) == 4
    assert len(cli("agents", "memories", "--superseded", "--json").json) == 2
    assert "superseded" in cli("agents", "memories", "--user", "ada").out
    found = cli("agents", "search", "when is the invoice due", "--tenant", TENANT, "--json").json
    assert found[0]["memory"]["id"] == have.memories[2]
    assert cli("agents", "search", "walrus").out == "Nothing like that is remembered.\n"
    shown = cli("agents", "memory", have.merged)
    assert "supersedes" in shown.out
    assert len(cli("agents", "memory", have.merged, "--json").json["edges"]) == 3
    told = cli("agents", "edit", have.merged, "--importance", "0.9", "--json").json
    assert told["importance"] == 0.9
    assert cli("agents", "edit", have.merged).says("--content, --type or --importance")
    added = cli("agents", "remember", "Ada has a boat", "--tenant", TENANT, "--user", "ada").out
    boat = added.removeprefix("Remembered: ").strip()
    merged = cli("agents", "merge", boat, have.merged, "--content", "All of Ada.", "--json").json
    assert merged["content"] == "All of Ada."
    assert cli("agents", "link", boat, have.memories[2]).out == "The two are tied.\n"
    gone = cli("agents", "link", boat, have.memories[2], "--remove").out
    assert gone == "The edge is removed.\n"
    assert cli("agents", "forget", boat).out == "The memory is deleted.\n"
    missing = cli("agents", "memory", boat)
    assert (missing.code, missing.says(boat)) == (3, True)


def test_sessions_tasks_and_patterns(cli: Cli, have: Furnished) -> None:  # noqa: F811
    assert have.session in cli("agents", "sessions", "--status", "closed").out
    shown = cli("agents", "session", have.session).out
    assert "Refund order 7" in shown
    [task] = cli("agents", "trajectories", "--verdict", "success", "--json").json
    assert task["session_id"] == have.session
    assert "Refunds go well" in cli("agents", "patterns", "--active").out
    off = cli("agents", "pattern", have.pattern, "--off", "--json").json
    assert off["is_active"] is False
    assert cli("agents", "patterns", "--active").out == "No pattern was found yet.\n"
    assert cli("agents", "pattern", have.pattern, "--on", "--off").says("one of")
    assert cli("agents", "classifiers").out == "None was trained yet.\n"


def test_webhooks_and_what_was_delivered(cli: Cli, have: Furnished) -> None:  # noqa: F811
    assert "enabled" in cli("agents", "webhooks").out
    assert "1 delivered" in cli("agents", "webhook", have.webhook).out
    [delivery] = cli("agents", "deliveries", have.webhook, "--json").json
    assert delivery["status_code"] == 200
    assert "sent again" in cli("agents", "replay", "--delivery", delivery["id"]).out
    since = ("--webhook", have.webhook, "--since", "2020-01-01T00:00Z", "--delivered")
    assert cli("agents", "replay", *since).out == "1 message sent again.\n"
    assert cli("agents", "replay").says("--delivery, or --webhook with --since")
    assert "on its way" in cli("agents", "test-webhook", have.webhook).out
    assert cli("agents", "rotate-secret", have.webhook).out.startswith("whsec_")
    changed = cli("agents", "change-webhook", have.webhook, "--disable", "--json").json
    assert changed["disabled_for"] == "disabled_by_hand"
    assert cli("agents", "change-webhook", have.webhook).says("--enable")
    made = cli("agents", "add-webhook", "https://example.com/h", "--topics", "a.b,c", "--json").json
    assert made["webhook"]["topics"] == ["a.b", "c"]
    private = cli("agents", "add-webhook", "https://10.0.0.1/")
    assert private.says("not a public one")
    assert cli("agents", "delete-webhook", have.webhook).out == "The webhook is deleted.\n"
    assert len(cli("agents", "webhooks", "--json").json) == 1


def test_quotas_exports_and_deletions(cli: Cli, have: Furnished, folder: Path) -> None:  # noqa: F811
    set_to = ("north", "money", "12.5", "--per", "day", "--then", "throttle")
    assert cli("agents", "set-quota", *set_to).out == "north may use $12.50 of money.\n"
    assert "throttle" in cli("agents", "quotas").out
    used = cli("agents", "quotas", "--tenant", "north", "--json").json
    assert {each["measure"] for each in used} == {"jobs", "money"}
    assert cli("agents", "remove-quota", "north", "money").out == "The quota is removed.\n"
    [export] = cli("agents", "exports", "--json").json
    assert stat.S_IMODE((folder / "agents" / export["file"]).stat().st_mode) == 0o600
    assert cli("agents", "export").says("--tenant or --user, or --audit")
    assert "has begun" in cli("agents", "export", "--audit").out
    asked = cli("agents", "erase", "--tenant", TENANT).out
    assert "4 agents_memories" in asked
    assert "say --yes" in asked
    nobody = cli("agents", "erase", "--tenant", TENANT, "--user", "", "--yes")
    assert nobody.says("a name, or left out"), "an empty variable of a script is not everybody"
    begun = cli("agents", "erase", "--tenant", TENANT, "--yes", "--json").json
    assert cli("jobs", "show", begun["job"], "--json").json["type"] == "data-deletion"
    within(folder, drain)
    [deletion] = cli("agents", "deletions", "--json").json
    assert deletion["status"] == "done"
    assert cli("agents", "memories").out == "No memory matches.\n"
    assert cli("agents", "erase").says("--tenant or --user")
