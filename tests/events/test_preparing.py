"""Entries made ready by another process: the same as by this one, and nothing lost with it."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from penstock import Penstock
from penstock.events import preparing as module
from penstock.events.preparing import Prepared, Preparing, prepare
from penstock.events.stream import Entry
from penstock.model import redact
from tests.events.streams import AT, Others, envelope, events_of, fast_path, streaming, until
from tests.support.places import Place

SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
async def app(place: Place, valkey_url: str, tmp_path: Path) -> AsyncIterator[Penstock]:
    async with streaming(place, valkey_url, tmp_path) as made:
        yield made


@pytest.fixture
async def preparing(app: Penstock) -> AsyncIterator[Preparing]:
    made = Preparing(app.events.preparer)
    yield made
    await made.close()


def entries_with(*changed: dict[str, Any]) -> list[Entry]:
    """Entries as the server tells them."""
    return [
        Entry(f"{AT}-{n}", [_bytes(part) for pair in envelope(n, **each).items() for part in pair])
        for n, each in enumerate(changed)
    ]


def _bytes(part: str | bytes) -> bytes:
    return part if isinstance(part, bytes) else part.encode()


async def by_child(preparing: Preparing, entries: list[Entry]) -> Prepared:
    """What a child makes of entries, once it is there."""
    await preparing.prepare([], AT, many=True)
    await until(lambda: preparing.pid is not None)
    return await preparing.prepare(entries, AT)


def unanswered(preparing: Preparing) -> int:
    """Return how many batches the child was given and has not answered."""
    assert preparing._child is not None
    return len(preparing._child._asked)


def told(prepared: Prepared) -> tuple[Any, ...]:
    return prepared.rows, prepared.letters, [work.stage for work in prepared.work]


async def test_a_child_makes_of_entries_what_this_process_makes_of_them(
    app: Penstock, preparing: Preparing
) -> None:
    entries = entries_with(
        {},
        {"payload": f'{{"text": "use {SECRET} here", "tokens_used": 9223372036854775807}}'},
        {"event_id": SECRET},
        {"payload": "{"},
        {"platform": b"\xff"},
        {"session_id": "s" * 1_000},
        {"person": "Ünal", "tenant_id": "acme", "payload": '{"a": ["\\u0000", 1.5, null]}'},
    )
    entries += [Entry(f"{AT}-90", None), Entry(f"{AT}-91", []), Entry(f"{AT}-92", [b"alone"])]
    here = prepare(app.events.preparer, entries, AT)
    there = await by_child(preparing, entries)
    assert told(there) == told(here)
    assert ([place for place, _ in here.rows], len(here.letters)) == ([0, 1, 6], 6)
    assert [row.body for _, row in there.rows] == [row.body for _, row in here.rows]
    assert SECRET.encode() not in here.rows[1][1].body


@pytest.fixture
def rule_of_others() -> Iterator[None]:
    redact.add_rule(without_shoes)
    yield
    redact.drop_rules()


def without_shoes(text: str) -> str:
    return text.replace("shoe", "[REDACTED_SHOE]")


@pytest.mark.usefixtures("rule_of_others")
async def test_rules_that_were_added_here_hold_in_a_child(preparing: Preparing) -> None:
    entries = entries_with({"payload": '{"text": "a shoe"}'})
    [(_, row)] = (await by_child(preparing, entries)).rows
    assert row.body == b'{"payload":{"text":"a [REDACTED_SHOE]"},"hook_type":"PostToolUse"}'


async def test_what_a_dead_child_has_not_answered_is_made_ready_here(
    preparing: Preparing,
) -> None:
    await by_child(preparing, [])
    assert preparing.pid is not None
    os.kill(preparing.pid, signal.SIGSTOP)
    asked = [
        asyncio.create_task(preparing.prepare(entries_with({"event_id": f"x{n}"}), AT))
        for n in range(3)
    ]
    await until(lambda: unanswered(preparing) == 3)
    os.kill(preparing.pid, signal.SIGKILL)
    found = [(await each).rows[0][1].event_id for each in asked]
    assert (found, preparing.pid) == (["x0", "x1", "x2"], None)


@pytest.mark.every_store
@pytest.mark.thorough
async def test_ingest_whose_child_is_killed_writes_everything_once_and_in_order(
    app: Penstock, valkey_url: str
) -> None:
    others = Others(valkey_url)
    others.add(*(envelope(n) for n in range(1_500)))
    async with fast_path(app) as path:
        running = asyncio.create_task(path.run())
        await until(lambda: path.preparing.pid is not None, 60)
        assert path.preparing.pid is not None
        os.kill(path.preparing.pid, signal.SIGSTOP)
        others.add(*(envelope(n) for n in range(1_500, 3_000)))
        await until(lambda: unanswered(path.preparing) > 0)
        assert others.length() >= 500
        os.kill(path.preparing.pid, signal.SIGKILL)
        await until(lambda: others.length() == 0, 60)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    events = await events_of(app)
    assert [event.event_id for event in events] == [f"e{n}" for n in range(3_000)]


async def test_a_child_with_nothing_to_do_is_ended(
    preparing: Preparing, monkeypatch: pytest.MonkeyPatch
) -> None:
    await by_child(preparing, [])
    pid = preparing.pid
    assert pid is not None
    await preparing.rest()
    assert preparing.pid == pid
    monkeypatch.setattr(module, "REST_SECONDS", 0.0)
    await preparing.rest()
    assert preparing.pid is None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_gate_that_cannot_be_carried_stays_here(
    app: Penstock, preparing: Preparing
) -> None:
    app.events.preparer.gate = lambda event: event
    prepared = await preparing.prepare(entries_with({}), AT, many=True)
    await until(lambda: preparing.starting is None)
    assert (len(prepared.rows), preparing.pid) == (1, None)


async def test_on_one_core_there_is_no_child(
    preparing: Preparing, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_cores", lambda: 1)
    await preparing.prepare(entries_with({}), AT, many=True)
    assert preparing.starting is None


PARENT = """
import asyncio, sys
from penstock import Penstock, Settings
from penstock.events.preparing import Preparing

async def main():
    async with Penstock(settings=Settings(url=sys.argv[1])) as app:
        preparing = Preparing(app.events.preparer)
        await preparing.prepare([], 0, many=True)
        while preparing.pid is None:
            await asyncio.sleep(0.01)
        print(preparing.pid, flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.thorough
def test_a_child_ends_with_its_parent(tmp_path: Path) -> None:
    command = [sys.executable, "-c", PARENT, f"sqlite:///{tmp_path}/events.db"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        child = psutil.Process(int(process.stdout.readline()))
        process.kill()
    _, alive = psutil.wait_procs([child], timeout=30)
    assert not alive
