"""No way in writes what must not be kept.

Canaries are planted in every input. Then every table, file, log line, stream, page and archive is
searched for them; each says where it was planted.
"""

import json
import time
from base64 import b32encode
from collections.abc import AsyncIterator, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import apsw
import httpx
import pytest

from penstock import Context, Penstock, Settings
from penstock.apps.recorder import capture, home, hook
from penstock.apps.recorder.cursor_store import import_store
from penstock.apps.recorder.importing import Importer, find
from penstock.apps.recorder.learnings import Learnings
from penstock.apps.recorder.platforms import HOOKS
from penstock.apps.recorder.privacy import Choice, Privacy, line_of
from penstock.events import spool
from penstock.events.log import EventFilter
from penstock.events.pool import catch_up
from penstock.server.app import create_server
from penstock.testing import drain
from penstock.testing.clock import FakeClock
from tests.apps.recorder.sessions import RECORDER, learn, record
from tests.events.streams import Others

DAY = 86_400


class Canaries:
    """Makes secrets and addresses that are known again, wherever they come out."""

    def __init__(self) -> None:
        self.planted: dict[str, str] = {}

    def plant(self, where: str, *, private: bool = True) -> str:
        """A text with one of each kind; what assistants tell may have a part that is private."""
        made = sha256(where.encode()).hexdigest()
        key = b32encode(bytes.fromhex(made))[:16].decode()
        person, word, secret = f"c{made[:12]}", f"Pw9{made[12:24]}", f"walrus{made[24:36]}"
        for fragment in (key, person, word, *([secret] if private else [])):
            assert fragment not in self.planted
            self.planted[fragment] = where
        told = (
            f"deploy with {'AK' + 'IA'}{key}, then tell {person}@harbour-works.com; "
            f"the database is postgres://svc:{word}@db.harbour-works.com/main"
        )
        return f"{told} <private>{secret}</private> done" if private else told

    def found_in(self, text: str) -> set[str]:
        """Where those were planted that a text holds."""
        return {where for fragment, where in self.planted.items() if fragment in text}


class House:
    """An application with the recorder's home below it, and canaries to plant."""

    def __init__(self, app: Penstock, clock: FakeClock, folder: Path) -> None:
        self.app = app
        self.clock = clock
        self.folder = folder
        self.canaries = Canaries()
        self.said = ""


@pytest.fixture
async def house(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[House]:
    monkeypatch.setenv("PENSTOCK_HOME", str(tmp_path))
    clock = FakeClock(time.time_ns() // 1_000_000)
    settings = Settings(
        url=home.url(), extension={"events": {"archive": str(tmp_path / "archive")}}
    )
    app = Penstock(settings=settings, extensions=["events", RECORDER], clock=clock)

    made = House(app, clock, tmp_path)

    @app.job(name="fails", max_retries=0)
    async def fails(ctx: Context) -> None:
        ctx.log(made.said)
        raise ValueError(made.said)

    async with app:
        await app.recorder.sessions.list()  # makes the tables, as `penstock hooks install` does
        await app.events.latest()
        yield made


def payload(event: str, session: str, text: str) -> str:
    """A hook's JSON with a canary in every field, also where nobody looks for text."""
    return json.dumps(
        {
            "session_id": session,
            "hook_event_name": event,
            "cwd": "/srv/shop",
            "tool_name": "Bash",
            "tool_use_id": f"{session}-{event}",
            "prompt": text,
            "message": text,
            "title": text,
            "tool_input": {"command": text, "deep": [{"er": [text]}], text: 1},
            "tool_response": {"stdout": text, "files": [text]},
            "tool_output": text,
            "result_json": json.dumps({"out": text}),
            "output": text,
            "text": text,
            "content": text,
            "error": text,
            "error_message": text,
            "last_assistant_message": text,
            "prompt_response": text,
            "response": text,
            "compact_summary": text,
            "custom_instructions": text,
            "input-messages": [text],
            "edits": [{"old_string": text, "new_string": text}],
            "nobody_knows_this": {"field": text},
            text: text,
        }
    )


def run_hooks(house: House, where: str, *platforms: str) -> None:
    """Every event of assistants, of all unless some are named, through the hook's own code."""
    for platform in platforms or HOOKS:
        for event in HOOKS[platform]:
            text = house.canaries.plant(f"{where} {platform} {event}")
            hook.record(platform, [event, payload(event, f"{where}-{platform}", text)])


async def dumped(house: House) -> str:
    """All that the store holds, bodies of events unpacked."""
    reader = apsw.Connection(home.place(home.DATABASE), flags=apsw.SQLITE_OPEN_READONLY)
    parts = []
    for (table,) in reader.execute("SELECT name FROM sqlite_master WHERE type = 'table'"):
        try:
            parts += [str(row) for row in reader.execute(f'SELECT * FROM "{table}"')]
        except apsw.SQLError:
            continue  # a part of an index, which only the index can read
    reader.close()
    after = 0
    while events := await house.app.events.find(EventFilter(after=after, limit=1_000)):
        parts += [str(event) for event in events]
        after = events[-1].sequence
    return "\n".join(parts)


def files(folder: Path) -> Iterator[tuple[str, str]]:
    """Every file below the home, as bytes read one by one."""
    for path in folder.rglob("*"):
        if path.is_file():
            yield path.name, path.read_bytes().decode("latin-1")


async def leaks(house: House, said: str = "") -> dict[str, set[str]]:
    """Where canaries were found, and where those had been planted."""
    places = {"the store": await dumped(house), "what was said": said}
    places |= dict(files(house.folder))
    found = {place: house.canaries.found_in(text) for place, text in places.items()}
    return {place: planted for place, planted in found.items() if planted}


async def test_every_hook_of_every_assistant_is_safe(
    house: House, capfd: pytest.CaptureFixture[str]
) -> None:
    run_hooks(house, "hook")
    events = sum(len(hooks) for hooks in HOOKS.values())
    assert await house.app.events.latest() == events, "each was written, and none spooled"
    await catch_up(house.app)
    await drain(house.app)
    await catch_up(house.app)
    said = capfd.readouterr()
    assert await leaks(house, said.out + said.err) == {}
    text = await dumped(house)
    assert text.count("deploy with") > 100, "what is around them was kept"


async def test_what_waits_in_the_spool_is_safe(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(home, "DATABASE", "none.db")
        run_hooks(house, "spool", "cursor", "gemini_cli")
    assert "deploy with" in dict(files(house.folder))[home.SPOOL]
    assert await leaks(house) == {}


async def test_what_cannot_be_made_safe_is_a_stub(
    house: House, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> Any:
        raise RuntimeError("the rules are gone")

    with monkeypatch.context() as patched:
        patched.setattr(capture, "cleaner", broken)
        run_hooks(house, "stub", "codex", "copilot")
    hook.record("codex", ["Stop", "{" + house.canaries.plant("torn")])
    assert await leaks(house) == {}
    events = await house.app.events.find()
    assert all("left_out" in event.payload for event in events)


async def test_what_is_in_a_session_id_is_safe(house: House) -> None:
    for n, field in enumerate(("session_id", "transcript_path", "cwd", "agent_id", "turn_id")):
        text = house.canaries.plant(f"field {field}")
        told = json.loads(payload("UserPromptSubmit", f"id-{n}", "hello")) | {field: text}
        hook.record("claude_code", ["UserPromptSubmit", json.dumps(told)])
    assert await leaks(house) == {}


async def test_an_imported_transcript_is_safe(house: House) -> None:
    folder = house.folder.parent / f"{house.folder.name}-transcripts" / "-srv-shop"
    folder.mkdir(parents=True)
    lines = []
    for n, role in enumerate(("user", "assistant", "system", "summary", "never-heard-of")):
        text = house.canaries.plant(f"transcript {role}")
        blocks = [
            {"type": "text", "text": text},
            {"type": "tool_use", "id": f"t{n}", "name": "Bash", "input": {"command": text}},
            {"type": "tool_result", "tool_use_id": f"t{n}", "content": text},
        ]
        lines.append(
            {
                "type": role,
                "uuid": f"u{n}",
                "sessionId": "imported",
                "timestamp": f"2026-11-01T10:00:{n:02}Z",
                "cwd": "/srv/shop",
                "message": {"role": role, "content": blocks, "model": "claude-sonnet-4-5"},
                "toolUseResult": {"stdout": text},
                "summary": text,
            }
        )
    path = folder / "imported.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    done = await Importer(house.app, processes=1).run(find(str(path)))
    assert done.events >= 4
    await catch_up(house.app)
    assert await leaks(house) == {}


async def test_hooks_over_http_are_safe(house: House) -> None:
    transport = httpx.ASGITransport(create_server(house.app, trusts_callers=True))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        for event in HOOKS["claude_code"]:
            text = house.canaries.plant(f"http {event}")
            answer = await http.post(
                "/api/recorder/hooks/claude_code",
                content=payload(event, "over-http", text),
                headers={"Content-Type": "application/json"},
            )
            assert answer.status_code == 200, answer.text
    await catch_up(house.app)
    assert await house.app.events.latest() == len(HOOKS["claude_code"])
    assert await leaks(house) == {}


async def test_telemetry_is_safe(house: House) -> None:
    records = []
    for n, name in enumerate(("user_prompt", "assistant_response", "tool_result", "new_event")):
        told = {
            "event.name": name,
            "session.id": "told",
            "user.email": house.canaries.plant(f"telemetry {name} email"),
            "prompt": house.canaries.plant(f"telemetry {name} prompt"),
            "response": house.canaries.plant(f"telemetry {name} response"),
            "tool_parameters": json.dumps({"c": house.canaries.plant(f"telemetry {name} json")}),
        }
        attributes = [{"key": key, "value": {"stringValue": text}} for key, text in told.items()]
        body = {"stringValue": house.canaries.plant(f"telemetry {name} body")}
        at = str(house.clock.now() * 1_000_000 + n)
        records.append({"timeUnixNano": at, "body": body, "attributes": attributes})
    document = {"resourceLogs": [{"scopeLogs": [{"logRecords": records}]}]}
    transport = httpx.ASGITransport(create_server(house.app, trusts_callers=True))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        answer = await http.post("/api/otlp/v1/logs", json=document)
    assert answer.status_code == 200, answer.text
    await catch_up(house.app)
    assert await house.app.events.latest() == len(records)
    assert await leaks(house) == {}


async def test_a_store_of_cursor_is_safe(house: House) -> None:
    folder = house.folder.parent / f"{house.folder.name}-cursor"
    folder.mkdir()
    path = str(folder / "state.vscdb")
    store = apsw.Connection(path)
    store.execute("CREATE TABLE cursorDiskKV (key TEXT UNIQUE, value BLOB)")
    for n, kind in enumerate((1, 2)):
        text = house.canaries.plant(f"cursor bubble {kind}")
        bubble = {"type": kind, "text": text, "createdAt": house.clock.now(), "more": [text]}
        bubble["toolFormerData"] = {"name": "x", "params": json.dumps({"c": text}), "result": text}
        row = (f"bubbleId:c1:b{n}", json.dumps(bubble).encode())
        store.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", row)
    composer = {"name": house.canaries.plant("cursor composer"), "createdAt": house.clock.now()}
    rows = [
        ("composerData:c1", json.dumps(composer)),
        ("nobodyKnows:c1", json.dumps({"x": house.canaries.plant("cursor unknown")})),
        ("agentKv:blob", house.canaries.plant("cursor no JSON")),
    ]
    store.execute("BEGIN")
    for row in rows:
        store.execute("INSERT INTO cursorDiskKV VALUES (?, ?)", row)
    store.execute("COMMIT")
    store.close()
    assert (await import_store(house.app, path)).events >= 3
    await catch_up(house.app)
    assert await leaks(house) == {}


async def test_what_programs_append_and_people_type_is_safe(house: House) -> None:
    app, canaries = house.app, house.canaries
    await record(app)
    learning = await learn(app)
    text = canaries.plant("edited learning", private=False)
    await Learnings(app).edit(learning, title=f"Keep {text[:150]}", content=text, tags=["a"])
    said = canaries.plant("append", private=False)
    await app.events.append("debug", session_id="api", payload={"said": said})
    server = create_server(app, trusts_callers=True)
    transport = httpx.ASGITransport(server)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        posted = {"x": canaries.plant("post", private=False)}
        told = {"event_type": "debug", "session_id": "h", "payload": posted}
        assert (await http.post("/api/events", json=told)).status_code == 200
        for path in ("recorder", "recorder/learnings", "recorder/sanitiser", "events/log"):
            assert canaries.found_in((await http.get(f"/{path}")).text) == set()
    assert await leaks(house) == {}


async def test_the_archive_and_an_export_are_safe(house: House) -> None:
    run_hooks(house, "old", "cursor", "codex")
    await catch_up(house.app)
    house.clock.advance(70 * DAY)
    archived = await house.app.events.archive(before=house.clock.now())
    assert archived
    exported = [line_of(each) async for each in Privacy(house.app).export(Choice(since=0))]
    assert len(exported) > 40
    said = b"".join(exported).decode()
    assert await leaks(house, said) == {}


async def test_a_stream_holds_only_what_is_safe(
    valkey_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spool, "PATIENCE_SECONDS", 30.0)  # a busy machine is no reason to spool
    canaries = Canaries()
    told = {"stream": valkey_url, "archive": str(tmp_path)}
    settings = Settings(url=f"sqlite:///{tmp_path}/work.db", extension={"events": told})
    async with Penstock(settings=settings, extensions=["events", RECORDER]) as app:
        text = canaries.plant("stream", private=False)
        await app.events.append("debug", session_id="s", payload={"said": text})
    others = Others(valkey_url)
    held = str(others.client.xrange(others.key("telemetry:events")))
    assert "deploy with" in held
    assert canaries.found_in(held) == set()


async def test_an_error_of_a_job_is_safe(house: House) -> None:
    """Its payload is the caller's own; what it raises and logs may come from anywhere."""
    text = house.canaries.plant("error", private=False)
    house.said = text
    job = await house.app.enqueue_payload("fails", "{}")
    await drain(house.app)
    [execution] = await house.app.store.reader.executions(job.id)
    assert "deploy with" in (execution.error or "")
    assert await leaks(house) == {}
