"""Fault 33: a burst of the recorder's hooks while its file is locked or missing."""

import json
import os
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest

from penstock import Penstock
from penstock.apps.recorder import home, spool
from penstock.apps.recorder.forward import flush_at_home
from penstock.apps.recorder.install import command_line, write_launcher
from penstock.events.log import EventFilter
from tests.faults.support.facts import TORTURE, figure

pytestmark = [pytest.mark.faults, pytest.mark.timeout(600)]

HOOKS = figure(short=16, full=2_000)
AT_ONCE = figure(short=4, full=8)
P99_SECONDS = 0.1 if TORTURE else 3.0
"""Beside other tests, a process may take longer to start than it would alone."""


@pytest.fixture
async def app(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Penstock:
    """An application on the recorder's own file, with a launcher beside it."""
    monkeypatch.setenv(home.FOLDER, str(tmp_path))
    write_launcher()
    return Penstock(home.url(), extensions=["events", "recorder"])


def burst(first: int, count: int, at_once: int) -> float:
    """Run hooks of one session each, some at once; the time that one in a hundred takes."""

    def tell(n: int) -> float:
        payload = {
            "session_id": f"s{n % 7}",
            "hook_event_name": "UserPromptSubmit",
            "prompt": f"number {n}",
        }
        began = time.perf_counter()
        ended = subprocess.run(
            [*command_line(), "claude_code"],
            input=json.dumps(payload).encode(),
            env={"PATH": os.defpath},
            capture_output=True,
            check=True,
        )
        assert ended.stdout == ended.stderr == b""
        return time.perf_counter() - began

    with ThreadPoolExecutor(at_once) as pool:
        taken = sorted(pool.map(tell, range(first, first + count)))
    return taken[len(taken) * 99 // 100]


async def prompts(app: Penstock) -> list[str]:
    """What the log has, by its number."""
    events = await app.events.find(EventFilter(limit=10_000))
    return sorted((event.payload["prompt"] for event in events), key=lambda each: int(each[7:]))


@pytest.mark.quick
async def test_nothing_is_lost_while_the_file_is_missing_locked_and_there_again(
    app: Penstock,
) -> None:
    assert burst(0, HOOKS // 4, 1) < P99_SECONDS  # there is no file yet
    async with app:
        await flush_at_home(app)
        assert not spool.holds_any()
    locking = apsw.Connection(home.place(home.DATABASE))
    locking.execute("BEGIN IMMEDIATE")
    assert burst(HOOKS // 4, HOOKS // 4, 1) < P99_SECONDS
    assert spool.holds_any()
    locking.execute("ROLLBACK")
    locking.close()
    burst(HOOKS // 2, HOOKS // 2, AT_ONCE)  # all of them at the file, and at the spool
    async with app:
        await flush_at_home(app)
        assert not spool.holds_any()
        assert await prompts(app) == [f"number {n}" for n in range(HOOKS)]
