"""`python -m proof.bench.hook`: how long an assistant waits for the hook.

Every figure is the time of a whole process, from its start to its end, as an assistant sees it.
What is compared takes turns, call by call: the hook, and an interpreter that only imports what any
hook in Python needs, `python -I -c "import sqlite3, json, re"`. The ratio is that of the medians.
"""

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median, quantiles
from typing import Any

import apsw

from penstock.app.penstock import Penstock
from penstock.app.transact import make_tables
from penstock.apps.recorder import home, spool
from penstock.apps.recorder.install import command_line, write_launcher
from proof.bench.report import line

BARE = [sys.executable, "-I", "-c", "import sqlite3, json, re"]
AT_ONCE = 8
PROMPT = (
    "The cart loses its items when a customer logs in. Look at how sessions are merged in "
    "src/shop/session.py and at the tests of it, and make the two that fail pass. "
)


def payloads() -> Iterator[tuple[str, bytes]]:
    """Events of a session as Claude Code tells them: a prompt of 4 KB, tools and their output."""
    n = 0
    while True:
        n += 1
        common = {
            "session_id": f"5f0c1d2e-0000-4000-8000-{n // 40:012d}",
            "transcript_path": "/home/ada/.claude/projects/-srv-shop/session.jsonl",
            "cwd": str(Path.cwd()),
            "permission_mode": "default",
        }
        call = {"tool_name": "Bash", "tool_input": {"command": f"pytest -q -k cart_{n}"}}
        call |= {"tool_use_id": f"toolu_{n:024d}"}
        output = {"stdout": f"{n} passed in 0.31s\n" * 60, "stderr": "", "interrupted": False}
        for event, more in (
            ("UserPromptSubmit", {"prompt": f"{n}. {PROMPT * 16}"}),
            ("PreToolUse", call),
            ("PostToolUse", {**call, "tool_response": output, "duration_ms": 310}),
            ("Stop", {"last_assistant_message": f"{n}: both tests pass now. {PROMPT}"}),
        ):
            yield event, json.dumps({**common, "hook_event_name": event, **more}).encode()


class Stopwatch:
    """Runs processes one after the other and takes their times, in milliseconds."""

    def __init__(self) -> None:
        self._told = payloads()
        self._lock = threading.Lock()

    def hook(self) -> float:
        """The hook, at the next event."""
        with self._lock:
            event, given = next(self._told)
        return self._run([*command_line(), "claude_code", event], given)

    def bare(self) -> float:
        """The interpreter alone."""
        return self._run(BARE, b"")

    @staticmethod
    def _run(words: list[str], given: bytes) -> float:
        began = time.perf_counter()
        ended = subprocess.run(words, input=given, stdout=subprocess.PIPE, check=True)
        taken = 1000 * (time.perf_counter() - began)
        assert not ended.stdout
        return taken


def processor_ms(work: Callable[[], float]) -> float:
    """How long processors were busy with it, whatever else they had to do."""
    before = getrusage(RUSAGE_CHILDREN)
    work()
    after = getrusage(RUSAGE_CHILDREN)
    return 1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def at_once(work: Callable[[], float]) -> list[float]:
    """Do it eight times at the same time."""
    taken: list[float] = []
    threads = [threading.Thread(target=lambda: taken.append(work())) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return taken


def turns(count: int, *works: Callable[[], list[float]]) -> list[list[float]]:
    """Let works take turns; the times of each."""
    times: list[list[float]] = [[] for _ in works]
    for _ in range(count):
        for work, taken in zip(works, times, strict=True):
            taken += work()
    return times


def figure(name: str, hook: list[float], bare: list[float] | None = None) -> tuple[str, str, str]:
    """A line of the table."""
    cuts = quantiles(hook, n=100)
    measured = f"{median(hook):.1f} ms, p95 {cuts[94]:.1f}, p99 {cuts[98]:.1f}"
    if bare is None:
        return name, measured, ""
    beside = f"{median(bare):.1f} ms, p95 {quantiles(bare, n=100)[94]:.1f}"
    return name, measured, f"{beside}: {median(hook) / median(bare):.2f}x"


async def make_file() -> None:
    """Make the recorder's file with its tables."""
    async with Penstock(home.url(), extensions=["events", "recorder"]) as app:
        for extension in app.extensions:
            if extension.tables is not None:
                await make_tables(app, extension.tables)


DRAINER = """
import asyncio, sys
from penstock import Penstock
from penstock.testing import drain

app = Penstock(sys.argv[1])

@app.job
async def nothing(n: int) -> None: ...

async def main():
    async with app:
        print("ready", flush=True)
        while True:
            await app.enqueue_many([nothing.new(n) for n in range(500)])
            await drain(app)

asyncio.run(main())
"""


@contextmanager
def draining() -> Generator[None, None, None]:
    """A worker that drains jobs of the same file all the time."""
    worker = subprocess.Popen(
        [sys.executable, "-c", DRAINER, home.url()],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PENSTOCK_LOG_LEVEL": "error"},
    )
    try:
        assert worker.stdout is not None
        worker.stdout.readline()
        yield
    finally:
        worker.kill()
        worker.wait()


@contextmanager
def locked() -> Generator[None, None, None]:
    """Somebody who holds the file and never lets it go."""
    connection = apsw.Connection(home.place(home.DATABASE))
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        connection.execute("ROLLBACK")
        connection.close()


@contextmanager
def serving(port: int = 18642) -> Generator[int, None, None]:
    """A server that takes hooks over HTTP."""
    server = subprocess.Popen(
        [sys.executable, "-m", "penstock.cli", "server", "--url", home.url(), "--port", str(port)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PENSTOCK_EXTENSIONS": "events,recorder"},
    )
    try:
        _wait_for(port)
        yield port
    finally:
        server.terminate()
        server.wait()


def _wait_for(port: int) -> None:
    for _ in range(400):
        try:
            _ask(port, "GET", "/health/live")
        except OSError:
            time.sleep(0.05)
        else:
            return
    raise RuntimeError(f"nobody answers at port {port}")


def _ask(port: int, method: str, path: str, body: bytes = b"") -> int:
    """Ask on a connection of its own, as an assistant does."""
    connection = HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        answer.read()
        return answer.status
    finally:
        connection.close()


def over_http(count: int) -> list[float]:
    """The times of hooks over HTTP."""
    told, taken = payloads(), []
    with serving() as port:
        for n in range(count + 5):
            _, given = next(told)
            began = time.perf_counter()
            status = _ask(port, "POST", "/api/recorder/hooks/claude_code", given)
            taken += [1000 * (time.perf_counter() - began)] if n >= 5 else []
            assert status == 200
    return taken


def kept() -> int:
    """How many events the file has."""
    connection = apsw.Connection(home.place(home.DATABASE))
    rows = connection.execute("SELECT 1 FROM events_log").fetchall()
    connection.close()
    return len(rows)


def measure(count: int) -> list[tuple[str, str, str]]:
    """All figures; what was spooled meanwhile is counted beside them."""
    watch = Stopwatch()
    each = [lambda: [watch.hook()], lambda: [watch.bare()]]
    turns(3, *each)
    hook, bare = turns(count, *each)
    found = [figure("alone", hook, bare)]
    busy: list[Any] = [lambda: [processor_ms(watch.hook)], lambda: [processor_ms(watch.bare)]]
    hook, bare = turns(count, *busy)
    found.append(figure("processor time, alone", hook, bare))
    with draining():
        hook, bare = turns(count, *each)
    found.append(figure("beside a worker that drains the same file", hook, bare))
    together: list[Any] = [lambda: at_once(watch.hook), lambda: at_once(watch.bare)]
    hook, bare = turns(max(4, count // AT_ONCE), *together)
    found.append(figure("eight at once", hook, bare))
    with locked():
        hook, bare = turns(count, *each)
    found.append(figure("while the file is locked (spooled)", hook, bare))
    found.append(("events in the file, and in the spool", f"{kept()}", f"{_spooled()}"))
    found.append(figure("over HTTP, to a server that runs", over_http(count)))
    return found


def _spooled() -> int:
    count = 0
    while (taken := spool.taken()) is not None:
        with taken:
            count += sum(1 for _ in taken.events())
            taken.done()
    return count


def main() -> None:
    """Measure in a home of its own and print the table."""
    count = 20 if "--quick" in sys.argv else 200
    with tempfile.TemporaryDirectory(prefix="penstock-hook-") as folder:
        os.environ[home.FOLDER] = folder
        write_launcher()
        asyncio.run(make_file())
        figures = measure(count)
    table = [line(("", "the hook", "the interpreter")), line(("---", "---", "---"))]
    table += [line(each) for each in figures]
    told = (__doc__ or "").partition("\n\n")[2].strip()
    lines = [told, "", *table, ""]
    sys.stdout.write("\n".join(lines))


if __name__ == "__main__":
    main()
