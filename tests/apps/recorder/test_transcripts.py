"""Transcripts are opened with care, read whole, imported once and followed."""

import json
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock import Penstock, Settings
from penstock.apps.recorder import conversations, importing, transcripts
from penstock.apps.recorder.captured import QUEUE, VALIDATION, conversation_id
from penstock.apps.recorder.extension import recorder
from penstock.apps.recorder.importing import Importer, find, follow
from penstock.apps.recorder.reading import Sessions
from penstock.apps.recorder.transcripts import Chunk, UntrustedFile, chunks, open_below
from penstock.apps.recorder.writing import write
from penstock.events import EventFilter, catch_up
from penstock.testing import FakeClock
from tests.apps.recorder import goldens
from tests.cli.conftest import Cli, cli, penstock  # noqa: F401

GOLDEN = goldens.load(goldens.FOLDER / "claude_transcript.json")
RECORDS = [event["record"] for event in GOLDEN["events"]]
LINES = b"".join(json.dumps(record).encode() + b"\n" for record in RECORDS)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of projects with one transcript."""
    project = tmp_path / "projects" / "-work-shop"
    project.mkdir(parents=True)
    (project / "tr-1.jsonl").write_bytes(LINES)
    return tmp_path / "projects"


@pytest.fixture
async def app(tmp_path: Path, folder: Path) -> AsyncIterator[Penstock]:
    told = {"recorder": {"transcripts": (str(folder),)}}
    settings = Settings(url=f"sqlite:///{tmp_path}/work.db", extension=told)
    clock = FakeClock(goldens.NOON + 100_000)
    async with Penstock(settings=settings, extensions=[recorder], clock=clock) as app:
        yield app


async def imported(app: Penstock, folder: Path, **how: Any) -> importing.Imported:
    return await Importer(app, processes=1, **how).run(find(str(folder)))


async def test_an_import_is_a_conversation_with_its_messages(app: Penstock, folder: Path) -> None:
    done = await imported(app, folder)
    assert (done.files, done.events, done.messages) == (1, len(RECORDS), 17)
    await catch_up(app, conversations.NAME)
    view = await Sessions(app).get("tr-1")
    assert (view.row.turns, view.row.messages, view.row.title) == (5, 17, "Faster cart")
    texts = [message.content for message in await Sessions(app).messages(view.row.id)]
    assert texts[-2] == "Thanks. ", "what is private is not there"
    [job] = await app.find()
    assert job.type == VALIDATION, "one for all that waits of a conversation"


async def test_words_of_an_import_are_found_and_nothing_is_left_to_be_indexed(
    app: Penstock, folder: Path
) -> None:
    await imported(app, folder)
    sessions = Sessions(app)
    assert {hit.role for hit in await sessions.search("thanks")} == {"user"}
    id_ = (await sessions.search("thanks"))[0].conversation_id
    assert [each.sequence for each in await sessions.messages(id_)] == list(range(1, 18))
    assert await app.read(lambda tx: tx.recorder.row("position", ("words",))) is None
    # Whatever is written one by one afterwards is indexed at once.
    one = goldens.captured({**GOLDEN, "events": GOLDEN["events"][:2]})
    later = [each._replace(event_id=f"{n}", source="hook") for n, each in enumerate(one)]
    before = len(await sessions.search("cart"))
    await write(app, later)
    assert len(await sessions.search("cart")) > before


async def test_an_import_does_not_wait_for_a_full_queue(app: Penstock, folder: Path) -> None:
    await app.controls.set_limit(queue=QUEUE, depth=1)
    await app.find_type(VALIDATION).enqueue(conversation_id="c", message_ids=["m"])
    done = await imported(app, folder)
    assert (done.messages, done.unvalidated) == (17, 17)


async def test_what_was_imported_is_not_imported_again(app: Penstock, folder: Path) -> None:
    await imported(app, folder)
    assert (await imported(app, folder)).bytes == 0, "it is not even read"
    again = await imported(app, folder, again=True)
    assert (again.bytes, again.events, again.messages) == (len(LINES), 0, 0)
    copy = folder / "-work-shop" / "tr-2.jsonl"
    copy.write_bytes(LINES.replace(b"tr-1", b"tr-2"))
    assert (await imported(app, folder)).events == 2, "a session that began as a copy: no uuid"


async def test_an_import_goes_on_where_the_last_one_ended(app: Penstock, folder: Path) -> None:
    file = folder / "-work-shop" / "tr-1.jsonl"
    file.write_bytes(LINES[:2_000])
    first = await imported(app, folder)
    assert first.bytes == LINES[:2_000].rfind(b"\n") + 1, "half a line is left"
    with file.open("ab") as opened:
        opened.write(LINES[2_000:])
    second = await imported(app, folder)
    assert first.bytes + second.bytes == len(LINES)
    assert first.events + second.events == len(RECORDS)


async def test_a_file_that_was_replaced_is_read_from_its_beginning(
    app: Penstock, folder: Path
) -> None:
    file = folder / "-work-shop" / "tr-1.jsonl"
    await imported(app, folder)
    shorter = LINES[: LINES.index(b"\n") + 1].replace(b"u1", b"z1")
    file.write_bytes(shorter)
    assert (await imported(app, folder)).bytes == len(shorter)
    other = folder / "other"
    other.write_bytes(shorter + shorter.replace(b"z1", b"z2"))
    other.replace(file)
    assert (await imported(app, folder)).bytes == 2 * len(shorter)


async def test_rules_of_the_user_hold_for_an_import(tmp_path: Path, folder: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text('[[rules]]\nid = "cart"\ntype = "PROJECT"\npattern = "Speed up"\n')
    settings = Settings(
        url=f"sqlite:///{tmp_path}/ruled.db", extension={"recorder": {"rules": str(rules)}}
    )
    async with Penstock(settings=settings, extensions=[recorder]) as app:
        await imported(app, folder)
        assert await Sessions(app).search('"speed up"') == []
        assert len(await Sessions(app).search("redacted project")) == 1


async def test_lines_that_are_no_records_are_passed_over(app: Penstock, folder: Path) -> None:
    file = folder / "-work-shop" / "tr-1.jsonl"
    file.write_bytes(b'[1]\nnonsense\n{"type": "new-kind", "sessionId": "tr-1"}\n\xff\n')
    assert (await imported(app, folder)).events == 1
    [event] = await app.events.find(EventFilter(session_id="tr-1"))
    assert (event.event_type, event.hook_type) == ("trace", "transcript.new-kind")


async def test_a_record_that_is_too_large_keeps_its_bones_and_its_message(
    app: Penstock, folder: Path
) -> None:
    texts = [{"type": "text", "text": f"{n} " * 90_000} for n in range(9)]
    record = {**RECORDS[1], "message": {"role": "user", "content": texts}}
    (folder / "-work-shop" / "tr-1.jsonl").write_bytes(json.dumps(record).encode() + b"\n")
    assert (await imported(app, folder)).messages == 9, "rows"
    [message] = await Sessions(app).messages(conversation_id("", transcripts.PLATFORM, "tr-1"))
    assert message.content == "\n".join(each["text"] for each in texts)
    [event] = await app.events.find(EventFilter(session_id="tr-1"))
    assert event.payload["left_out"] == "its content is too large"
    assert event.payload["uuid"] == RECORDS[1]["uuid"]


def test_pictures_and_what_stands_there_twice_are_left_out() -> None:
    picture = {"type": "image", "source": {"type": "base64", "data": "A" * 5_000}}
    result = {"type": "tool_result", "tool_use_id": "t", "content": [picture]}
    record = {
        **RECORDS[1],
        "message": {"role": "user", "content": [picture, result]},
        "toolUseResult": {"originalFile": "x" * 5_000, "interrupted": False},
    }
    line = json.dumps(record).encode() + b"\n"
    [one] = transcripts.captured(Chunk(line, 0, 0), "tr-1", goldens.clean)
    assert len(json.dumps(one.payload)) < 1_500
    assert one.payload["toolUseResult"] == {"interrupted": False}


@pytest.mark.parametrize("escaped", [False, True])
def test_what_is_private_is_gone_however_it_is_written(escaped: bool) -> None:
    text = "Thanks. <private>My name is Ann.</private> a\0b \ud800"
    line = json.dumps({**RECORDS[1], "message": {"role": "user", "content": text}}).encode()
    if escaped:
        line = line.replace(b"<", b"\\u003c").replace(b">", b"\\u003e")
    [one] = transcripts.captured(Chunk(line + b"\n", 0, 0), "tr-1", goldens.clean)
    assert b"Ann" not in json.dumps(one.payload).encode()
    assert [message.content[:10] for message in one.messages] == ["Thanks.  a"]
    assert "\0" not in one.messages[0].content


def test_a_record_that_cannot_be_made_safe_is_a_stub() -> None:
    def broken(found: Any) -> Any:
        if isinstance(found, str):
            return found, ()
        raise ValueError("broken")

    line = json.dumps(RECORDS[1]).encode() + b"\n"
    [one] = transcripts.captured(Chunk(line, 0, 0), "tr-1", broken)
    assert one.payload == {"left_out": "it could not be made safe (ValueError)"}
    assert one.messages == ()


def read(path: Path, begin: int = 0) -> list[tuple[bytes, int]]:
    file = os.open(path, os.O_RDONLY)
    try:
        return [(chunk.data, chunk.end) for chunk in chunks(file, begin, 0)]
    finally:
        os.close(file)


def test_lines_are_read_whole_whatever_their_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(transcripts, "CHUNK", 10)
    monkeypatch.setattr(transcripts, "LONGEST_LINE", 40)
    path = tmp_path / "lines"
    lines = [b"a\n", b"b" * 25 + b"\n", b"c" * 60 + b"\n", b"d\n", b"half"]
    path.write_bytes(b"".join(lines))
    found = read(path)
    assert b"".join(data for data, _ in found) == lines[0] + lines[1] + lines[3]
    assert found[-1][1] == sum(map(len, lines[:4]))
    for begin in (2, 28, 89):
        assert b"".join(data for data, _ in read(path, begin)).endswith(b"d\n")


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[Path]:
    """A folder with a file, and another one beside it."""
    (tmp_path / "root" / "deep").mkdir(parents=True)
    (tmp_path / "root" / "deep" / "ok.jsonl").write_text("{}\n")
    (tmp_path / "outside.jsonl").write_text("{}\n")
    return iter([tmp_path / "root"])


def test_only_regular_files_of_this_user_below_a_folder_are_opened(inside: Iterator[Path]) -> None:
    root = next(inside)
    os.close(open_below(str(root), str(root / "deep" / "ok.jsonl")))
    (root / "link.jsonl").symlink_to(root / "deep" / "ok.jsonl")
    (root / "folder").symlink_to(root / "deep")
    os.mkfifo(root / "pipe.jsonl")
    for path, problem in {
        root / ".." / "outside.jsonl": "it is not below",
        root.parent / "outside.jsonl": "it is not below",
        root / "link.jsonl": "it cannot be opened",
        root / "folder" / "ok.jsonl": "it cannot be opened",
        root / "none.jsonl": "it cannot be opened",
        root / "deep": "it is not a regular file",
        root / "pipe.jsonl": "it is not a regular file",
    }.items():
        with pytest.raises(UntrustedFile, match=problem):
            open_below(str(root), str(path))


def test_a_file_of_somebody_else_or_a_huge_one_is_not_opened(
    inside: Iterator[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = next(inside)
    path = str(root / "deep" / "ok.jsonl")
    monkeypatch.setattr(transcripts, "LARGEST_FILE", 1)
    with pytest.raises(UntrustedFile, match="it is larger than"):
        open_below(str(root), path)
    monkeypatch.setattr(os, "getuid", lambda: 123_456)
    with pytest.raises(UntrustedFile, match="it belongs to another user"):
        open_below(str(root), path)


async def test_a_file_that_is_not_trusted_is_told_of_and_the_others_are_read(
    app: Penstock, folder: Path
) -> None:
    (folder / "-work-shop" / "link.jsonl").symlink_to("/etc/passwd")
    done = await imported(app, folder)
    assert (done.files, done.events) == (1, len(RECORDS))
    assert ["link.jsonl is not read" in each for each in done.left_out] == [True]


async def test_a_transcript_adds_what_hooks_do_not_tell(app: Penstock, folder: Path) -> None:
    golden = goldens.load(goldens.FOLDER / "claude_followed.json")
    hooks = [one for one in goldens.captured(golden) if one.source == "hook"]
    await write(app, hooks[:5])
    await catch_up(app, conversations.NAME)
    records = [event["record"] for event in golden["events"] if "record" in event]
    path = folder / "-work-shop" / "both-1.jsonl"
    path.write_bytes(b"".join(json.dumps(each).encode() + b"\n" for each in records[:4]))
    agents = folder / "-work-shop" / "both-1" / "subagents"
    agents.mkdir(parents=True)
    helper = {**records[0], "uuid": "h1", "isSidechain": True, "agentId": "a1"}
    (agents / "agent-a1.jsonl").write_text(json.dumps(helper) + "\n")

    assert await follow(app) == 5
    await catch_up(app, conversations.NAME)
    view = await Sessions(app).get("both-1")
    assert (view.row.turns, view.row.tools, view.row.tokens.output) == (2, 1, 25)
    texts = [each.content for each in await Sessions(app).messages(view.row.id)]
    assert texts.count("Change one to two.") == 2, "once by the hook, and once by the helper"
    assert texts.count("Changed.") == 1

    assert await follow(app) == 0, "nothing is new"
    await write(app, hooks[5:6])
    await catch_up(app, conversations.NAME)
    with path.open("ab") as opened:
        opened.writelines(json.dumps(each).encode() + b"\n" for each in records[4:])
    assert await follow(app) == 0, "the turn goes on"
    await write(app, hooks[6:])
    await catch_up(app, conversations.NAME)
    assert await follow(app) == 2


async def test_nothing_is_followed_of_which_no_hook_tells(app: Penstock) -> None:
    assert await follow(app) == 0
    assert await app.events.find(EventFilter(session_id="tr-1")) == []


async def test_several_processes_import_what_one_does(
    app: Penstock, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importing, "SMALL", 0)
    done = await Importer(app, processes=2).run(find(str(folder)))
    assert (done.events, done.messages) == (len(RECORDS), 17)
    found = await app.events.find(EventFilter(session_id="tr-1", limit=100))
    told = [event.payload.get("uuid") for event in found]
    assert told == [record.get("uuid") for record in RECORDS], "in their order"


IMPORT = """
import asyncio, sys
from penstock import Penstock, Settings
from penstock.apps.recorder import importing
from penstock.apps.recorder.extension import recorder

async def never(*_):
    await asyncio.gather(*map(asyncio.wrap_future, importer._begun))
    print("all have begun", flush=True)
    await asyncio.sleep(600)

async def main():
    global importer
    async with Penstock(settings=Settings(url=sys.argv[1]), extensions=[recorder]) as app:
        importer = importing.Importer(app, processes=2)
        await importer.run(importing.find(sys.argv[2]))

if __name__ == "__main__":
    importing.SMALL, importing.keep = 0, never
    asyncio.run(main())
"""


@pytest.mark.thorough
def test_an_import_that_is_killed_leaves_no_process_behind(tmp_path: Path, folder: Path) -> None:
    script = tmp_path / "import.py"
    script.write_text(IMPORT)
    command = [sys.executable, str(script), f"sqlite:///{tmp_path}/work.db", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "all have begun\n"
        children = psutil.Process(process.pid).children()
        process.kill()
    assert len(children) >= 2
    _, alive = psutil.wait_procs(children, timeout=30)
    assert not alive


async def test_small_files_are_made_safe_while_others_are_written(
    app: Penstock, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(2, 5):
        lines = LINES.replace(b"tr-1", b"tr-%d" % number).replace(
            b'uuid": "', b'uuid": "%d' % number
        )
        (folder / f"tr-{number}.jsonl").write_bytes(lines)
    read: list[int] = []
    read_at_writes: list[int] = []
    keep = importing.keep

    def counted(file: int, begin: int, since: int) -> Iterator[Chunk]:
        for chunk in chunks(file, begin, since):
            read.append(file)
            yield chunk

    async def kept(*given: Any) -> Any:
        read_at_writes.append(len(read))
        return await keep(*given)

    monkeypatch.setattr(importing, "chunks", counted)
    monkeypatch.setattr(importing, "keep", kept)
    done = await Importer(app, processes=2).run(find(str(folder)))
    assert (done.files, read_at_writes) == (4, [4, 4, 4, 4])
    for number in range(1, 5):
        found = await app.events.find(EventFilter(session_id=f"tr-{number}", limit=100))
        assert len(found) == len(RECORDS)


def test_import_is_a_command(folder: Path, cli: Cli) -> None:  # noqa: F811
    answer = cli("recorder", "import", str(folder))
    assert answer.code == 0, answer.err
    assert f"1 file: {len(RECORDS)} events and 17 messages are new." in answer.out
    assert cli("recorder", "import", str(folder), "--json").json["events"] == 0
    assert cli("recorder", "import", str(folder / "none")).says("a folder of such")
