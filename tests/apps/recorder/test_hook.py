"""The hook: one commit, or a line in the spool; and whatever happens, nobody notices."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest

from penstock import Penstock
from penstock.apps.recorder import hook, local, spool
from penstock.apps.recorder.captured import VALIDATION, Captured
from penstock.apps.recorder.install import write_launcher
from penstock.apps.recorder.writing import write
from penstock.store.relational.tables import load_named
from penstock.store.sqlite.connect import queries
from tests.apps.recorder.payloads import SESSION, told


@pytest.fixture(autouse=True)
def let_go() -> Iterator[None]:
    """Close what a hook leaves open, as its process would end."""
    yield
    for file in hook._open:
        assert isinstance(file, local.LocalFile)
        file.close()
    hook._open.clear()


def tell(event: str, platform: str = "claude_code", **changed: Any) -> None:
    """Run the hook in this process."""
    hook.record(platform, [event, json.dumps({**told(platform, event), **changed})])


def rows(path: Path, sql: str) -> list[tuple[Any, ...]]:
    connection = apsw.Connection(str(path), apsw.SQLITE_OPEN_READONLY)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def spooled(path: Path) -> list[Captured]:
    """What waits in the spool, in the order in which it will be written."""
    files = [path.with_name(f"recorder.spool{end}") for end in (".flushing", "")]
    lines = [line for file in files if file.exists() for line in file.read_bytes().splitlines()]
    return [one for one in map(spool.captured_in, lines) if one is not None]


def test_a_prompt_is_an_event_a_message_and_a_job_in_one_commit(recorder_file: Path) -> None:
    tell("UserPromptSubmit")
    [(event_id, event_type, codec)] = rows(
        recorder_file, "SELECT event_id, event_type, codec FROM events_log"
    )
    assert (event_type, codec) == ("user_prompt", "raw")
    [(message, of, role, content)] = rows(
        recorder_file, "SELECT id, event_id, role, content FROM recorder_messages"
    )
    assert (of, role, content) == (event_id, "user", "Make the tests pass")
    [(type_, status, priority, key, scope, payload)] = rows(
        recorder_file, "SELECT type, status, priority, key, key_scope, payload FROM jobs"
    )
    assert (type_, status, priority) == (VALIDATION, "queued", 1)
    assert (key, scope) == (f"sanitize-ai-validation-{message}", "while_pending")
    assert json.loads(payload)["message_ids"] == [message]
    assert not spooled(recorder_file)


@pytest.mark.parametrize(
    "event", ["PreToolUse", "SessionStart", "Notification", "PermissionRequest"]
)
def test_what_carries_no_text_enqueues_nothing(recorder_file: Path, event: str) -> None:
    tell(event)
    [(document,)] = rows(recorder_file, "SELECT event_data FROM events_log")
    assert json.loads(document)["hook_type"] == event
    assert rows(recorder_file, "SELECT id FROM recorder_messages") == []
    assert rows(recorder_file, "SELECT id FROM jobs") == []


def test_the_hook_writes_the_rows_that_penstock_writes(
    recorder_file: Path, tmp_path: Path, made_file: Path
) -> None:
    tell("PostToolUse", tool_response={"stdout": "2 passed " * 200})
    captured, _ = hook.captured_of(
        "claude_code",
        [
            "",
            json.dumps(
                {
                    **told("claude_code", "PostToolUse"),
                    "tool_response": {"stdout": "2 passed " * 200},
                }
            ),
        ],
        1,
    )
    other = tmp_path / "other.db"
    other.write_bytes(made_file.read_bytes())
    [(at,)] = rows(recorder_file, "SELECT timestamp FROM events_log")

    async def by_penstock() -> None:
        async with Penstock(f"sqlite:///{other}", extensions=["events", "recorder"]) as app:
            await write(app, [captured._replace(timestamp=at)])

    asyncio.run(by_penstock())
    for table, but in (
        ("events_log", {"ingested_at", "codec", "event_data"}),
        ("recorder_messages", set()),
        ("recorder_redactions", set()),
        ("jobs", {"id", "rank", "scheduled_at", "created_at", "updated_at", "queued_at"}),
        ("job_keys", {"job_id"}),
    ):
        names = [name for (name,) in rows(other, f"SELECT name FROM pragma_table_info('{table}')")]
        asked = ", ".join(name for name in names if name not in but)
        ours = rows(recorder_file, f"SELECT {asked} FROM {table}")
        assert ours == rows(other, f"SELECT {asked} FROM {table}"), table
        assert ours or table == "recorder_redactions"
    [(rank, scheduled, created, queued)] = rows(
        recorder_file, "SELECT rank, scheduled_at, created_at, queued_at FROM jobs"
    )
    assert rank == scheduled == created == queued


def test_its_statements_are_those_of_the_store_the_events_and_the_recorder() -> None:
    known = {
        **queries(),
        **load_named("penstock.events", "sqlite"),
        **load_named("penstock.apps.recorder", "sqlite"),
    }
    used = local.statements()
    for name in [name for names in local.STATEMENTS.values() for name in names]:
        assert used[name].strip().rstrip(";") == known[name], name


def test_while_the_file_is_locked_it_spools_and_the_next_hook_brings_it_in(
    recorder_file: Path,
) -> None:
    locked = apsw.Connection(str(recorder_file))
    locked.execute("BEGIN IMMEDIATE")
    tell("UserPromptSubmit")
    tell("PreToolUse")
    assert [one.hook_type for one in spooled(recorder_file)] == ["UserPromptSubmit", "PreToolUse"]
    locked.execute("ROLLBACK")
    locked.close()
    tell("PostToolUse")
    kept = rows(recorder_file, "SELECT event_data FROM events_log ORDER BY sequence")
    assert [json.loads(body)["hook_type"] for (body,) in kept] == [
        "UserPromptSubmit",
        "PreToolUse",
        "PostToolUse",
    ]
    assert not spool.holds_any()


def test_without_a_file_it_spools(empty_home: Path) -> None:
    tell("UserPromptSubmit")
    assert len(spooled(empty_home / "recorder.db")) == 1
    assert not (empty_home / "recorder.db").exists()
    assert (empty_home / "recorder.spool").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("name", ["schema", "extension:events", "extension:recorder"])
def test_a_file_of_another_version_is_left_alone(recorder_file: Path, name: str) -> None:
    connection = apsw.Connection(str(recorder_file))
    connection.execute("UPDATE penstock_meta SET value = value + 1 WHERE name = ?", (name,))
    connection.close()
    tell("UserPromptSubmit")
    assert rows(recorder_file, "SELECT 1 FROM events_log") == []
    assert len(spooled(recorder_file)) == 1


def test_a_full_queue_spools(recorder_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "QUEUE_LIMIT", 1)
    tell("UserPromptSubmit")
    tell("Stop")
    assert len(rows(recorder_file, "SELECT 1 FROM events_log")) == 1
    assert [one.hook_type for one in spooled(recorder_file)] == ["Stop"]


@pytest.mark.parametrize("content", [b"", b"not a database, though long enough to be one" * 50])
def test_a_file_that_is_none_of_ours_is_left_as_it_is(empty_home: Path, content: bytes) -> None:
    path = empty_home / "recorder.db"
    path.write_bytes(content)
    tell("UserPromptSubmit")
    assert path.read_bytes() == content
    assert len(spooled(path)) == 1


def test_a_full_disk_spools(recorder_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise apsw.FullError("database or disk is full")

    monkeypatch.setattr(local.LocalFile, "_write", full)
    tell("UserPromptSubmit")
    assert len(spooled(recorder_file)) == 1


def test_an_event_that_two_hooks_tell_of_is_written_once(recorder_file: Path) -> None:
    tell("PostToolUse", "codex")
    hook.record("claude_code", ["", json.dumps(told("codex", "PostToolUse"))])
    tell("UserPromptSubmit", "codex")
    hook.record("claude_code", ["", json.dumps(told("codex", "UserPromptSubmit"))])
    assert len(rows(recorder_file, "SELECT 1 FROM events_log")) == 2
    assert len(rows(recorder_file, "SELECT 1 FROM recorder_messages")) == 2


def test_what_cannot_be_made_safe_is_a_stub(
    recorder_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> None:
        raise RuntimeError("Make the tests pass")

    monkeypatch.setattr("penstock.apps.recorder.capture._made_safe", broken)
    tell("UserPromptSubmit")
    [(body,)] = rows(recorder_file, "SELECT event_data FROM events_log")
    assert b"Make the tests pass" not in body
    assert json.loads(body)["payload"]["left_out"].startswith("it could not be read or made safe")
    assert rows(recorder_file, "SELECT * FROM recorder_messages") == []


def test_what_the_sanitiser_takes_out_is_nowhere_on_disk_and_counted_by_rule(
    recorder_file: Path,
) -> None:
    token = "ghp_" + "q7Zk2Vx9" * 4 + "mN4p"
    tell("UserPromptSubmit", prompt=f"Use {token} to push")
    locked = apsw.Connection(str(recorder_file))
    locked.execute("BEGIN IMMEDIATE")
    tell("PostToolUse", tool_response={"stdout": f"token: {token}"})
    locked.execute("ROLLBACK")
    locked.close()
    for file in recorder_file.parent.iterdir():
        assert token.encode() not in file.read_bytes(), file.name
    [(content,)] = rows(recorder_file, "SELECT content FROM recorder_messages")
    assert content == "Use [REDACTED_GITHUB_TOKEN] to push"
    found = "SELECT replacement, detector, length(original_snippet_hash) FROM recorder_redactions"
    [counted] = rows(recorder_file, f"{found} WHERE message_id IS NOT NULL")
    assert counted == ("[REDACTED_GITHUB_TOKEN]", "rule", 64)


def test_a_torn_line_of_the_spool_costs_no_other(empty_home: Path) -> None:
    tell("UserPromptSubmit")
    file = empty_home / "recorder.spool"
    file.write_bytes(file.read_bytes() + b'["claude_code", "to')
    tell("Stop")
    taken = spool.taken()
    assert taken is not None
    with taken:
        assert [one.hook_type for one in taken.events()] == ["UserPromptSubmit", "Stop"]


def test_a_spool_is_taken_by_one_at_a_time_and_stays_until_it_is_done(empty_home: Path) -> None:
    tell("UserPromptSubmit")
    first = spool.taken()
    assert first is not None
    assert spool.taken() is None
    first.close()
    tell("Stop")  # behind it
    again = spool.taken()
    assert again is not None
    assert [one.hook_type for one in again.events()] == ["UserPromptSubmit"]
    again.done()
    again.close()
    assert [one.hook_type for one in spooled(empty_home / "recorder.db")] == ["Stop"]


def run(
    home: Path, words: list[str], given: bytes, **env: str
) -> subprocess.CompletedProcess[bytes]:
    """Run the hook as assistants do."""
    launcher = write_launcher()
    assert launcher.startswith(str(home))
    return subprocess.run(
        [sys.executable, "-I", "-S", launcher, *words],
        input=given,
        env={"HOME": str(home), "PATH": os.defpath, **env},
        capture_output=True,
        timeout=60,
        check=False,
    )


@pytest.mark.parametrize(
    ("words", "given", "answer"),
    [
        (["claude_code"], json.dumps(told("claude_code", "SessionStart")).encode(), b""),
        (["cursor"], json.dumps(told("cursor", "preToolUse")).encode(), b""),
        (["gemini_cli"], json.dumps(told("gemini_cli", "BeforeTool")).encode(), b"{}"),
        (["claude_code", "PreToolUse"], b"{not json \xff", b""),
        (["codex", "notify", json.dumps(told("codex", "agent-turn-complete"))], b"", b""),
        (["unheard-of"], b"[]", b""),
        ([], b"", b""),
    ],
)
def test_as_a_process_it_says_nothing_ends_well_and_has_written(
    recorder_file: Path, words: list[str], given: bytes, answer: bytes
) -> None:
    ended = run(recorder_file.parent, words, given)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, answer, b"")
    assert len(rows(recorder_file, "SELECT 1 FROM events_log")) == 1
    assert not spooled(recorder_file)


def test_it_can_be_switched_off(recorder_file: Path) -> None:
    given = json.dumps(told("claude_code", "Stop")).encode()
    run(recorder_file.parent, ["claude_code"], given, PENSTOCK_HOOK_DISABLED="1")
    assert rows(recorder_file, "SELECT 1 FROM events_log") == []
    assert not spooled(recorder_file)


def test_it_loads_nothing_that_takes_long(recorder_file: Path) -> None:
    launcher = write_launcher()
    told_here = json.dumps(told("claude_code", "UserPromptSubmit"))
    program = f"""
import sys
sys.argv[1:] = ["claude_code", {told_here!r}]
import os
os._exit = lambda code: None
exec(open({launcher!r}).read(), {{"__file__": {launcher!r}}})
print(*(name for name in {LATE} if name in sys.modules))
"""
    answered = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True
    )
    assert answered.stdout.split() == []
    assert len(rows(recorder_file, "SELECT 1 FROM events_log")) == 1


LATE = (
    *("msgspec", "asyncio", "structlog", "pathlib", "importlib.metadata", "site", "inspect"),
    *("typing", "json", "re", "hashlib", "hmac", "enum", "contextlib"),
)


def test_it_keeps_to_its_home_wherever_it_is_run(recorder_file: Path) -> None:
    launcher = write_launcher()
    given = json.dumps(told("claude_code", "Stop")).encode()
    subprocess.run(
        [sys.executable, "-I", "-S", launcher, "claude_code"],
        input=given,
        env={"PATH": os.defpath},
        cwd="/",
        check=True,
    )
    assert rows(recorder_file, "SELECT session_id FROM events_log") == [(SESSION,)]
