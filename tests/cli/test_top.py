import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from penstock.model.controls import Pause, PauseScope
from penstock.model.states import Status
from penstock.store.contract import Claim, JobFilter, Resolution, Store
from penstock.store.open import open_store

from .conftest import Cli
from .terminal import ALTERNATE, BACK, Terminal

SHOWN = "q quit"


@pytest.fixture
def top(shopped: Cli, tmp_path: Path) -> Iterator[Callable[..., Terminal]]:
    """`top()` in a terminal, on a store in which a worker has been; one job waits in `mail`."""
    shopped("enqueue", "greet", "--payload", '{"name": "bob"}', "--queue", "mail")
    opened: list[Terminal] = []

    def start(*words: str, **size: int) -> Terminal:
        opened.append(Terminal(tmp_path, "top", "--url", "sqlite:///work.db", *words, **size))
        opened[-1].wait_for(SHOWN)
        return opened[-1]

    yield start
    for terminal in opened:
        terminal.close()


def asked(folder: Path, question: Callable[[Store], Any]) -> Any:
    async def ask() -> Any:
        store = open_store(f"sqlite:///{folder / 'work.db'}")
        await store.open()
        try:
            return await question(store)
        finally:
            await store.close()

    return asyncio.run(ask())


def pauses(folder: Path) -> list[Pause]:
    found: list[Pause] = asked(folder, lambda store: store.controls.pauses())
    return found


def restored(terminal: Terminal) -> bool:
    shown = terminal.seen
    back = shown.rindex(BACK) > shown.rindex(ALTERNATE)
    cursor = shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")
    return back and cursor and terminal.attributes == terminal.before


def test_a_key_pauses_the_chosen_queue_and_resumes_it(
    top: Callable[..., Terminal], tmp_path: Path
) -> None:
    terminal = top("--interval", "0.2")
    terminal.type("j")
    terminal.type("p")
    terminal.wait_for("is paused")
    (pause,) = pauses(tmp_path)
    assert (pause.scope, pause.name, pause.paused_by) == (PauseScope.QUEUE, "mail", "penstock top")
    terminal.wait_for("‖ mail")
    terminal.type("p")
    terminal.wait_for("is resumed")
    assert pauses(tmp_path) == []
    entries = asked(tmp_path, lambda store: store.audit.page(0, 10))
    assert [(e.action, e.subject) for e in entries] == [
        ("pause", "queue:mail"),
        ("resume", "queue:mail"),
    ]
    assert '"reason_hash":"' in entries[0].details
    terminal.type("q")
    assert terminal.ended() == 0
    assert restored(terminal)


def test_a_dead_job_is_requeued_from_the_last_panel(
    top: Callable[..., Terminal], tmp_path: Path
) -> None:
    terminal = top()
    terminal.type("\x1b[Z")
    terminal.type("e")
    terminal.wait_for("dead letter")
    terminal.type("r")
    terminal.wait_for("will run again")
    left = asked(tmp_path, lambda store: store.dead.find(resolution=Resolution.PENDING))
    assert len(left) == 1
    (job,) = asked(
        tmp_path,
        lambda store: store.reader.find(JobFilter(statuses=(Status.PENDING,), type="doomed")),
    )
    assert job.attempts == 0
    terminal.type("q")
    assert terminal.ended() == 0


def test_a_running_job_is_cancelled_only_after_a_yes(
    top: Callable[..., Terminal], tmp_path: Path
) -> None:
    claim = Claim(owner="host:1", types=("greet",), limit=1, start=1, lease_ms=60_000)
    (lease,) = asked(tmp_path, lambda store: store.jobs.claim(claim)).leases
    terminal = top()
    terminal.type("\t\t")
    terminal.type("c")
    terminal.wait_for(f"Ask job {lease.id} to stop? y/n")
    terminal.type("n")
    terminal.wait_for(SHOWN)
    terminal.type("c")
    terminal.wait_for("y/n")
    terminal.type("y")
    terminal.wait_for("was asked to stop")
    (job,) = asked(tmp_path, lambda store: store.reader.get([lease.id]))
    assert job.status is Status.IN_PROGRESS
    assert job.cancel_requested_at is not None
    terminal.type("q")
    assert terminal.ended() == 0


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 0), (signal.SIGINT, 130), (signal.SIGHUP, 0)]
)
@pytest.mark.thorough
def test_a_signal_leaves_the_terminal_as_it_was(
    top: Callable[..., Terminal], number: signal.Signals, code: int
) -> None:
    terminal = top()
    assert terminal.attributes != terminal.before
    os.kill(terminal.process.pid, number)
    assert terminal.ended() == code
    assert restored(terminal)


def test_an_error_nobody_foresaw_leaves_the_terminal_as_it_was(
    top: Callable[..., Terminal], tmp_path: Path
) -> None:
    terminal = top("--interval", "0.2")
    asked(tmp_path, break_a_row)
    assert terminal.ended() == 70
    assert restored(terminal)


async def break_a_row(store: Store) -> None:
    connection: Any = store.connection()
    connection.execute("INSERT INTO pauses VALUES ('no such scope', 'x', NULL, NULL, 0)")
    connection.close()


def test_help_comes_and_goes_and_a_resize_is_followed(top: Callable[..., Terminal]) -> None:
    terminal = top()
    terminal.type("?")
    terminal.wait_for("all its retries")
    terminal.type("?")
    terminal.wait_for("QUEUED")
    terminal.resize(130, 30)
    os.kill(terminal.process.pid, signal.SIGWINCH)
    terminal.wait_for(" " * 45 + "\x1b")
    terminal.type("q")
    assert terminal.ended() == 0


def test_a_paste_is_one_frame_and_not_one_for_each_key(top: Callable[..., Terminal]) -> None:
    terminal = top("--interval", "3600")
    terminal.type("jk" * 500 + "?")
    terminal.wait_for("all its retries")
    assert terminal.seen.count(SHOWN) < 100
    terminal.type("q")
    assert terminal.ended() == 0


def test_without_a_terminal_it_prints_one_frame(shopped: Cli) -> None:
    out = shopped("top").out
    for part in ("work.db", "default", "doomed", "order A-1 can never be done", "No job runs"):
        assert part in out
    assert "\x1b" not in out
    assert max(map(len, out.splitlines())) <= 100


def test_a_store_on_a_server_is_called_by_its_url(cli: Cli, valkey_url: str) -> None:
    assert cli("migrate", "--url", valkey_url).code == 0
    out = cli("top", "--once", "--url", valkey_url).out
    assert valkey_url.partition("?")[0][:20] in out


def test_for_scripts_there_is_one_snapshot(shopped: Cli) -> None:
    found = shopped("top", "--json").json
    assert found["total"]["completed"] == 3
    assert [row["queue"] for row in found["queues"]] == ["default", "mail"]  # all of it has ended
    assert {row["type"] for row in found["dead"]} == {"doomed"}
    assert found["running"] == found["workers"] == found["pauses"] == []


def test_a_paused_queue_is_shown_though_it_is_empty(shopped: Cli, tmp_path: Path) -> None:
    asked(tmp_path, lambda store: store.controls.pause(PauseScope.QUEUE, "bulk"))
    queues = shopped("top", "--json").json["queues"]
    held = {row["queue"]: row["held"] for row in queues}
    assert held == {"bulk": True, "default": False, "mail": False}
    assert "‖ bulk" in shopped("top", "--once").out


def test_too_short_an_interval_is_one_sentence(shopped: Cli) -> None:
    answer = shopped("top", "--interval", "0")
    assert answer.code == 2
    assert answer.says("interval")
