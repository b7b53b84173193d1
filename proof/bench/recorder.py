"""`python -m proof.bench.recorder`: how fast sessions are understood, read and imported.

Events are those of many sessions at once, as hooks tell them. A consumer's rate is that of one
process with one worker, decoding, deriving and committing included. Transcripts are made up as
Claude Code writes them, mostly what tools wrote; how fast they are imported stands beside what the
sanitiser alone does with the same lines on one core. On a busy machine, judge it by processor time:
what it would be with the cores to itself.
"""

import argparse
import asyncio
import json
import os
import random
import re
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import UUID

from penstock.app.penstock import Penstock
from penstock.apps.recorder import conversations, insights, metrics
from penstock.apps.recorder.capture import cleaner
from penstock.apps.recorder.captured import Captured, Message
from penstock.apps.recorder.importing import Importer, find
from penstock.apps.recorder.reading import SessionNotFound, Sessions
from penstock.apps.recorder.transcripts import CHUNK, Chunk, captured
from penstock.apps.recorder.writing import write
from penstock.events import catch_up
from penstock.model.wording import counted
from proof.bench.report import line

NOON = 1_767_268_800_000
SESSIONS = 200
WORDS = re.findall(
    r"\w+",
    "the cart of a session is merged when somebody logs in so that nothing is lost but prices are "
    "looked up again def return self total item price none true for in if not raise error value",
)


def prose(size: int, chance: random.Random) -> str:
    """Text of about so many characters."""
    lines = [" ".join(chance.choices(WORDS, k=12)) for _ in range(1 + size // 70)]
    return "\n".join(lines)[:size]


def hooks(count: int) -> Iterator[Captured]:
    """Events of sessions that run side by side: a prompt, five tools with results, an answer."""
    chance = random.Random(16)
    for n in range(count):
        session, step = f"bench-{n % SESSIONS}", n // SESSIONS
        turn, within = divmod(step, 12)
        call = {
            "tool_name": ("Read", "Bash", "Edit", "Grep", "Write")[within // 2 % 5],
            "tool_input": {
                "file_path": f"/srv/shop/{within}.py",
                "old_string": "total = 0",
                "new_string": "total = sum(prices)",
                "content": "total = 0\n",
                "command": f"pytest -k {turn}",
            },
            "tool_use_id": f"toolu_{session}_{turn}_{within // 2}",
        }
        common = {"session_id": session, "cwd": "/srv/shop"}
        payload: dict[str, Any]
        text = prose(400, chance)
        if within == 0:
            hook, payload, role = "UserPromptSubmit", {"prompt": text}, "user"
        elif within == 11:
            hook, payload, role = "Stop", {"last_assistant_message": text}, "assistant"
        elif within % 2:
            hook, payload, role = "PreToolUse", call, ""
        else:
            hook, payload, role = "PostToolUse", {**call, "tool_response": {"stdout": text}}, "tool"
            payload["tool_use_id"] = f"toolu_{session}_{turn}_{(within - 1) // 2}"
        yield Captured(
            platform="claude_code",
            session_id=session,
            hook_type=hook,
            event_type="tool_use",
            event_id=f"{session}-{step}",
            timestamp=NOON + step * 1_000,
            payload={**common, **payload},
            source="hook",
            messages=(Message(role, text),) if role else (),
        )


async def understanding(app: Penstock, count: int) -> list[tuple[str, str, str]]:
    """How fast each consumer takes events in, and how fast sessions are read."""
    events = list(hooks(count))
    began = time.perf_counter()
    for begin in range(0, count, 500):
        await write(app, events[begin : begin + 500])
    found = [("events with messages written", _rate(count, began), "")]
    for consumer in (conversations.NAME, metrics.NAME, insights.NAME):
        began = time.perf_counter()
        await catch_up(app, consumer)
        target = "≥ 2,000 events/s" if consumer == conversations.NAME else ""
        found.append((f"{consumer}: one process", _rate(count, began), target))
    sessions = Sessions(app)
    for name, ask, target in (
        ("list of 50 sessions", sessions.list, ""),
        ("a whole session", lambda: sessions.get("bench-7"), ""),
        ("a search for two words", lambda: sessions.search("cart prices"), ""),
        ("figures of all sessions", sessions.stats, ""),
    ):
        found.append((name, await _p95(ask), target))
    found.append(("first view of a session after its event", await first_view(app), "< 2 s"))
    return found


async def first_view(app: Penstock) -> str:
    """From the commit of an event until its session can be read, by consumers that wait for it."""
    from penstock.events.pool import consume

    running = asyncio.create_task(consume(app, [conversations.NAME]))
    await asyncio.sleep(1)
    taken = []
    for n in range(20):
        one = next(hooks(1))._replace(session_id=f"fresh-{n}", event_id=f"fresh-{n}")
        await write(app, [one])
        began = time.perf_counter()
        while True:
            try:
                await Sessions(app).get(f"fresh-{n}")
            except SessionNotFound:
                await asyncio.sleep(0.01)
            else:
                break
        taken.append(1000 * (time.perf_counter() - began))
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    return f"p95 {sorted(taken)[18]:.0f} ms"


async def _p95(ask: Any) -> str:
    taken = []
    for _ in range(40):
        began = time.perf_counter()
        await ask()
        taken.append(1000 * (time.perf_counter() - began))
    return f"p95 {sorted(taken)[37]:.1f} ms"


def _rate(count: int, began: float) -> str:
    return f"{count / (time.perf_counter() - began):,.0f} events/s"


def transcript(path: Path, size: int, chance: random.Random) -> int:
    """Make a transcript of about so many bytes; how many it has."""
    session, n, written = path.stem, 0, 0
    before = None
    with path.open("wb") as file:
        while written < size:
            n += 1
            own = str(UUID(int=chance.getrandbits(128), version=4))
            base = {
                "parentUuid": before,
                "sessionId": session,
                "timestamp": "2026-01-01T12:00:00.000Z",
                "cwd": "/srv/shop",
                "version": "2.1.200",
                "gitBranch": "main",
                "isSidechain": False,
                "uuid": own,
            }
            before = own
            line = json.dumps({**base, **_record(n, chance)}).encode() + b"\n"
            written += file.write(line)
    return written


def _record(n: int, chance: random.Random) -> dict[str, Any]:
    if n % 10 == 1:
        return {"type": "user", "message": {"role": "user", "content": prose(600, chance)}}
    if n % 2:
        text = prose(chance.choice((500, 2_000, 8_000)), chance)
        result = {"type": "tool_result", "tool_use_id": f"t{n - 1}", "content": text}
        told = {"stdout": text, "stderr": "", "interrupted": False}
        return {
            "type": "user",
            "message": {"role": "user", "content": [result]},
            "toolUseResult": told,
        }
    usage = {"input_tokens": 10, "output_tokens": 200, "cache_read_input_tokens": 9_000}
    call = {"type": "tool_use", "id": f"t{n}", "name": "Bash", "input": {"command": "pytest -q"}}
    content = [{"type": "text", "text": prose(300, chance)}, call]
    message = {"id": f"m{n}", "role": "assistant", "model": "claude-opus-4-6", "usage": usage}
    return {"type": "assistant", "requestId": f"r{n}", "message": {**message, "content": content}}


async def importing(
    app: Penstock, folder: Path, megabytes: int, *, in_each: int
) -> list[tuple[str, str, str]]:
    """How fast transcripts of a size come in, and how much memory that takes."""
    chance = random.Random(17)
    each = min(megabytes, in_each) << 20
    total, path = 0, folder
    for _ in range(max(1, (megabytes << 20) // each)):
        name = str(UUID(int=chance.getrandbits(128), version=4))
        path = folder / f"{name}.jsonl"
        total += transcript(path, each, chance)
    before, busy_before = _sanitiser_alone(path)
    cores = os.cpu_count() or 1
    await Importer(app, processes=1).run([])
    grown: list[int] = []

    def show(_: str, read: int, size: int) -> None:
        if not grown and read > size // 10:
            grown.append(_most_memory())

    began, ours, theirs = time.perf_counter(), _seconds(OURS), _seconds(THEIRS)
    done = await Importer(app).run(find(str(folder)), show)
    rate = total / (time.perf_counter() - began) / 1e6
    writer, others = _seconds(OURS) - ours, _seconds(THEIRS) - theirs
    grown.append(_most_memory())
    after, busy_after = _sanitiser_alone(path)
    alone, busy = (before + after) / 2, (busy_before + busy_after) / 2
    what = f"{total / 1e6:,.0f} MB in {counted(done.files, 'file')}"
    to_write, to_make = 1e9 * writer / total, 1e9 * others / total
    possible = total / max(writer, (writer + others) / cores) / 1e6
    return [
        ("lines made safe, one core", f"{alone:.1f} MB/s", ""),
        (
            f"import of {what} by {cores} processes, {done.events:,} events",
            f"{rate:.1f} MB/s",
            f"{rate / (alone * cores):.2f} of that times cores (≥ 0.4)",
        ),
        (
            f"the same by processor time: {to_write:.0f} ms/MB to write, {to_make:.0f} to make",
            f"{possible:.1f} MB/s of {busy:.1f}",
            f"{possible / (busy * cores):.2f} of that times cores (≥ 0.4)",
        ),
        ("memory after a tenth, and at the end", " → ".join(f"{n} MB" for n in grown), "flat"),
    ]


OURS, THEIRS = resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN


def _seconds(whose: int) -> float:
    """Processor time that this process, or those that it began and that have ended, took."""
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime


def _most_memory() -> int:
    return resource.getrusage(OURS).ru_maxrss >> 10


def _sanitiser_alone(path: Path) -> tuple[float, float]:
    """MB of transcripts a second that one core makes safe: by the clock, and of its own time."""
    clean = cleaner()[0]
    with path.open("rb") as file:
        data = file.read(4 * CHUNK)
    data = data[: data.rfind(b"\n") + 1]
    captured(Chunk(data[: data.index(b"\n") + 1], 0, 0), "x", clean)
    began, used = time.perf_counter(), time.process_time()
    captured(Chunk(data, 0, 0), "x", clean)
    taken, used = time.perf_counter() - began, time.process_time() - used
    return len(data) / taken / 1e6, len(data) / used / 1e6


async def measure(count: int, megabytes: int) -> list[tuple[str, str, str]]:
    """All figures."""
    with tempfile.TemporaryDirectory(prefix="penstock-bench-") as folder:
        url = f"sqlite:///{folder}/recorder.db"
        async with Penstock(url, extensions=["events", "recorder"]) as app:
            found = await understanding(app, count)
        for in_each in (50, 1):
            place = Path(folder) / f"transcripts-{in_each}"
            place.mkdir()
            url = f"sqlite:///{folder}/imported-{in_each}.db"
            async with Penstock(url, extensions=["events", "recorder"]) as app:
                found += await importing(app, place, megabytes, in_each=in_each)
    return found


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=24_000)
    parser.add_argument("--megabytes", type=int, default=200)
    given = parser.parse_args()
    found = asyncio.run(measure(given.events, given.megabytes))
    table = [line(("", "measured", "target")), line(("---", "---", "---")), *map(line, found)]
    told = (__doc__ or "").partition("\n\n")[2].strip()
    lines = [told, "", *table, ""]
    sys.stdout.write("\n".join(lines))


if __name__ == "__main__":
    main()
