"""`make bench-events`: how fast events are appended, applied and compressed, in one run.

The raw limit is the same compressed rows, inserted by bare statements in batches of 100 under the
same schema with `synchronous=FULL`. Everything of ours is measured with the gate and compression
on, and waits for the disk.
"""

import asyncio
import random
import statistics
import sys
import tempfile
import time
import zlib
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import apsw

from penstock.app.penstock import Penstock
from penstock.config import Settings
from penstock.events.codec import Codec, packed, unpacked
from penstock.events.event import NewEvent
from penstock.events.pool import catch_up
from penstock.events.prepare import Row
from penstock.store.relational.tables import load_named
from penstock.store.sqlite.connect import connect
from proof.bench.derived import derived_figures
from proof.bench.event_stream import stream_figures
from proof.bench.machine import facts
from proof.bench.page import EVENTS, find_checkout, write_part
from proof.bench.report import facts_table, line
from proof.tally import Tally, tally

BATCH = 100
SESSIONS = 200
WORDS = [
    f"{a}{b}" for a in ("re", "un", "de", "in", "co") for b in ("turn", "pack", "sign", "code")
]


def made_up(count: int, seed: int = 1) -> list[NewEvent]:
    """Events of 500 bytes to 4 KB, as an assistant's hooks would tell them."""
    chance = random.Random(seed)
    return [_made_up(chance, n) for n in range(count)]


def _made_up(chance: random.Random, n: int) -> NewEvent:
    text = " ".join(chance.choices(WORDS, k=chance.randint(20, 450)))
    code = f"def {chance.choice(WORDS)}_{n}(value: int) -> str:\n    return f'{{value}} {n}'\n"
    return NewEvent(
        event_type=chance.choice(("tool_use", "user_prompt", "assistant_response", "debug")),
        session_id=f"5f0c1d2e-0000-4000-8000-{n % SESSIONS:012d}",
        platform="claude_code",
        payload={
            "hook_event_name": "PostToolUse",
            "tool_name": chance.choice(("Edit", "Bash", "Read", "Grep")),
            "tool_input": {"file_path": f"/srv/shop/src/{chance.choice(WORDS)}.py", "new": code},
            "tool_response": {"stdout": text, "is_error": False, "duration_ms": n % 900},
            "tool_use_id": f"toolu_{chance.getrandbits(96):024x}",
            "cwd": "/srv/shop",
            "amount": n % 7,
        },
        metadata={"version": "2.1.296", "input_tokens": n % 4_000, "git_branch": "main"},
    )


def an_app(folder: Path, name: str) -> Penstock:
    """An application with a file of its own, whatever the environment says."""
    settings = Settings(url=f"sqlite:///{folder}/{name}.db")
    return Penstock(settings=settings, extensions=[tally])


async def appended(app: Penstock, events: Sequence[NewEvent]) -> float:
    """Append in batches, two under way at a time, as a process that reads ahead does; events/s."""
    batches = [events[n : n + BATCH] for n in range(0, len(events), BATCH)]
    await app.events.append("warm_up")
    began = time.perf_counter()

    async def some(mine: Sequence[Sequence[NewEvent]]) -> None:
        for batch in mine:
            await app.events.append_many(batch)

    await asyncio.gather(some(batches[::2]), some(batches[1::2]))
    return len(events) / (time.perf_counter() - began)


def raw(folder: Path, name: str, rows: Sequence[Row]) -> float:
    """The same rows by bare statements; events/s."""
    app = an_app(folder, name)

    async def make() -> None:
        async with app:
            await app.events.append("warm_up")

    asyncio.run(make())
    sql = load_named("penstock.events", "sqlite")["append"]
    connection: apsw.Connection = connect(folder / f"{name}.db")
    began = time.perf_counter()
    for n in range(0, len(rows), BATCH):
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany(sql, [row.bindings for row in rows[n : n + BATCH]])
        connection.execute("COMMIT")
    took = time.perf_counter() - began
    connection.close()
    return len(rows) / took


async def single(app: Penstock, events: Sequence[NewEvent]) -> list[float]:
    """Append one by one; the milliseconds of each."""
    took: list[float] = []
    for event in events:
        began = time.perf_counter()
        await app.events.append(event)
        took.append((time.perf_counter() - began) * 1_000)
    return took


async def consumed(app: Penstock, count: int) -> float:
    """Apply all events of the log, each updating a row of its session; events/s."""
    began = time.perf_counter()
    await catch_up(app, "tally")
    return count / (time.perf_counter() - began)


def compressed(rows: Sequence[Row]) -> dict[str, tuple[float, float]]:
    """Bytes and microseconds per event, for zlib 6 and for zstd with its dictionary."""
    bodies = [row.body for row in rows]
    packed(bodies[0], Codec.ZSTD, "claude_code")
    found: dict[str, tuple[float, float]] = {}
    packs: dict[str, Callable[[bytes], bytes]] = {
        "zlib 6": lambda body: zlib.compress(body, 6),
        "zstd": lambda body: packed(body, Codec.ZSTD, "claude_code"),
    }
    for name, pack in packs.items():
        began = time.process_time()
        sizes = [len(pack(body)) for body in bodies]
        took = time.process_time() - began
        found[name] = (statistics.mean(sizes), took / len(bodies) * 1e6)
    assert unpacked(packed(bodies[0], Codec.ZSTD, "claude_code"), "zstd") == bodies[0]
    return found


def measure(folder: Path, count: int, rounds: int) -> list[tuple[str, str, str]]:
    """Every figure: what, how much, and beside what."""
    events = made_up(count)
    rows = an_app(folder, "rows").events.preparer.rows(events, 1)
    size = statistics.mean(len(row.body) for row in rows)
    limits, rates, consumers, singles = [], [], [], []
    for n in range(rounds):
        limits.append(raw(folder, f"raw{n}", rows))
        app = an_app(folder, f"ours{n}")
        app.consumer.add(Tally().consumer(batch=500))
        rates.append(_run(app, partial(appended, events=events)))
        consumers.append(_run(app, partial(consumed, count=count)))
        singles += _run(app, partial(single, events=made_up(500, seed=n + 7)))
    limit, rate = statistics.median(limits), statistics.median(rates)
    squeezed = compressed(rows)
    (zlib_size, zlib_us), (zstd_size, zstd_us) = squeezed["zlib 6"], squeezed["zstd"]
    return [
        (
            f"append, batches of {BATCH}",
            f"{rate:,.0f} events/s",
            f"{limit:,.0f} raw: {rate / limit:.2f}",
        ),
        ("one consumer, a row per event", f"{statistics.median(consumers):,.0f} events/s", ""),
        ("append of one, p50", f"{_percentile(singles, 50):.2f} ms", ""),
        ("append of one, p95", f"{_percentile(singles, 95):.2f} ms", ""),
        (
            f"a body of {size:,.0f} bytes, zstd",
            f"{zstd_size:,.0f} bytes",
            f"{zlib_size:,.0f} zlib 6",
        ),
        (
            "compressing it, zstd",
            f"{zstd_us:.1f} µs",
            f"{zlib_us:.1f} zlib 6: {zlib_us / zstd_us:.1f}x",
        ),
    ]


def flatness(folder: Path, sizes: Sequence[int]) -> list[tuple[str, str, str]]:
    """How fast a log of so many events is appended to."""
    app = an_app(folder, "flat")
    found: list[tuple[str, str, str]] = []
    held, rate = 0, 0.0
    for size in sizes:
        while held < size:
            some = made_up(min(20_000, size - held), seed=held + 3)
            rate = _run(app, partial(appended, events=some))
            held += len(some)
        found.append((f"append to a log of {size:,}", f"{rate:,.0f} events/s", ""))
    return found


def _run(app: Penstock, work: Callable[[Penstock], Awaitable[Any]]) -> Any:
    async def opened() -> Any:
        async with app:
            return await work(app)

    return asyncio.run(opened())


def _percentile(values: Sequence[float], percent: int) -> float:
    return statistics.quantiles(values, n=100)[percent - 1]


def main() -> None:
    """Measure, print, and write the part of the page that is about events."""
    quick = "--quick" in sys.argv
    with tempfile.TemporaryDirectory(prefix="penstock-events-") as scratch:
        folder = Path(scratch)
        figures = measure(folder, 2_000 if quick else 50_000, 1 if quick else 5)
        figures += stream_figures(folder, made_up(2_000 if quick else 50_000, seed=5))
        figures += flatness(folder, (2_000,) if quick else (100_000, 500_000, 1_000_000))
        # Last, since it loads the recorder, whose rules hold for a whole process.
        figures += derived_figures(
            folder, made_up(2_000, seed=9), per_second=5_000, seconds=2 if quick else 30
        )
        machine = facts(folder)
    table = [line(("", "measured", "beside")), line(("---", "---", "---"))]
    table += [line(figure) for figure in figures]
    told = (__doc__ or "").partition("\n\n")[2].strip()
    text = "\n".join([told, "", *table, "", *facts_table(machine), ""])
    sys.stdout.write(text)
    checkout = find_checkout()
    if checkout is not None and not quick:
        write_part(checkout / "benchmarks" / "RESULTS.md", EVENTS, text)


if __name__ == "__main__":
    main()
