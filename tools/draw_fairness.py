"""Measures fairness and draws it: docs/pictures/fairness.svg and docs/pictures/ageing.svg.

`python tools/draw_fairness.py` runs a real worker on 100,000 jobs, which takes a minute.
"""

import asyncio
import math
import sys
import tempfile
import time
from pathlib import Path

from penstock import Penstock, Settings, Worker
from penstock.model.clock import SystemClock
from penstock.model.ids import new_id
from penstock.model.job import NewJob
from penstock.model.outcome import Completed
from penstock.store.contract import Claim, Store
from penstock.store.open import open_store
from penstock.testing import FakeClock

PICTURES = Path(__file__).parents[1] / "docs" / "pictures"
BIG, SMALL, CONCURRENCY, JOB_SECONDS = 100_000, 10, 10, 0.02
STEPS_PER_HOUR = 60
WIDTH = 760

STYLE = """<style>
  text { font: 13px system-ui, sans-serif; fill: #24292f }
  .title { font-weight: 600; font-size: 15px }
  .quiet { fill: #59636e }
  .axis { stroke: #d1d9e0; stroke-width: 1 }
  .promise { stroke: #bf8700; stroke-width: 1.5; stroke-dasharray: 4 3 }
  .ours { fill: #1a7f37 }
  .theirs { fill: #cf222e }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3 }
    .quiet { fill: #9198a1 }
    .axis { stroke: #3d444d }
    .promise { stroke: #d29922 }
    .ours { fill: #3fb950 }
    .theirs { fill: #f85149 }
  }
</style>"""


async def measure_turns(big: int = BIG) -> list[float]:
    """Seconds until each job of tenant B starts, with `big` jobs of tenant A queued before it."""
    starts: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(url=f"sqlite:///{folder}/work.db", queue_limit=0)
        async with Penstock(settings=settings) as app:
            started = asyncio.Event()
            enough = asyncio.Event()

            @app.job
            async def work(tenant: str) -> None:
                started.set()
                if tenant == "b":
                    starts.append(time.monotonic())
                    if len(starts) == SMALL:
                        enough.set()
                await asyncio.sleep(JOB_SECONDS)

            for _ in range(0, big, 10_000):
                size = min(10_000, big)
                await app.enqueue_many([work.options(tenant="a").new("a") for _ in range(size)])
            worker = Worker(app, concurrency=CONCURRENCY, upkeep=False)
            running = asyncio.create_task(worker.run())
            await started.wait()
            began = time.monotonic()
            await app.enqueue_many([work.options(tenant="b").new("b") for _ in range(SMALL)])
            await enough.wait()
            worker.stop()
            worker.stop()
            await running
    return [start - began for start in starts]


async def simulate_ageing() -> dict[int, float]:
    """Hours until a job of each priority starts, in a steady flood of priority 1.

    As many new jobs of priority 1 arrive as can be run: without ageing nothing else ever would be.
    """
    clock = FakeClock()
    store = open_store("sqlite:///:memory:", clock)
    await store.open()
    began = clock.now()
    waiting = {new_id(): priority for priority in range(2, 11)}
    await store.jobs.enqueue(
        [NewJob(id=job_id, type="work", priority=p) for job_id, p in waiting.items()]
    )
    found: dict[int, float] = {}
    while len(found) < len(waiting):
        await store.jobs.enqueue([NewJob(id=new_id(), type="work", priority=1)])
        for job_id in await _run_one(store, clock):
            if job_id in waiting:
                found[waiting[job_id]] = (clock.now() - began) / 3_600_000
        clock.advance(seconds=3600 / STEPS_PER_HOUR)
    await store.close()
    return found


async def _run_one(store: Store, clock: FakeClock) -> list[str]:
    owner = "host:draw"
    wanted = Claim(owner=owner, types=("work",), limit=1, start=1, lease_ms=60_000)
    leases = (await store.jobs.claim(wanted)).leases
    ended = [
        Completed(
            id=lease.id,
            fence=lease.fence,
            type=lease.type,
            queue=lease.queue,
            started_at=clock.now(),
            wait_ms=0,
            duration_ms=1,
            result="null",
        )
        for lease in leases
    ]
    await store.jobs.settle(owner, ended)
    return [lease.id for lease in leases]


def turns_picture(starts: list[float]) -> str:
    """When B's jobs start: as measured, and as they would without turns; a logarithmic axis."""
    left, right, low, high = 150, WIDTH - 40, 0.01, 1_000.0

    def x(seconds: float) -> float:
        share = math.log(max(seconds, low) / low) / math.log(high / low)
        return left + share * (right - left)

    first_in = [(BIG + n) * JOB_SECONDS / CONCURRENCY for n in range(SMALL)]
    parts = [
        _text(
            20, 28, "When do 10 jobs of tenant B start, with 100,000 of tenant A queued?", "title"
        ),
        _text(20, 50, "One worker, 10 at once, 20 ms a job; each dot is a job of B.", "quiet"),
        _line(x(2), 72, x(2), 178, "promise"),
        _text(x(2), 68, "promised: within 2 s", "quiet", "middle"),
        _text(left - 14, 108, "tenants take turns", anchor="end"),
        _text(left - 14, 156, "first in, first out", anchor="end"),
        *(_dot(x(start), 104, "ours") for start in starts),
        *(_dot(x(start), 152, "theirs") for start in first_in),
        _text(x(min(starts)) - 6, 124, f"all within {max(starts):.2f} s (measured)", "quiet"),
        _text(x(first_in[0]) - 12, 172, f"{first_in[0]:.0f} s (computed)", "quiet", "end"),
        _line(left, 186, right, 186, "axis"),
    ]
    for tick, name in ((0.01, "10 ms"), (0.1, "100 ms"), (1, "1 s"), (10, "10 s"), (100, "100 s")):
        parts += [
            _line(x(tick), 186, x(tick), 192, "axis"),
            _text(x(tick), 208, name, "quiet", "middle"),
        ]
    return _svg(228, parts, "Start times of a small tenant's jobs beside a big tenant's backlog")


def ageing_picture(hours: dict[int, float]) -> str:
    """How long a job of each priority waits at most."""
    left, top, step = 110, 76, 24
    widest = max(hours.values())
    scale = (WIDTH - left - 90) / widest
    parts = [
        _text(20, 28, "How long does a job wait in an endless flood of priority 1?", "title"),
        _text(
            20,
            50,
            "As many new jobs of priority 1 arrive as can be run; one step of priority is an hour.",
            "quiet",
        ),
    ]
    for place, priority in enumerate(sorted(hours)):
        y = top + place * step
        width = max(2.0, hours[priority] * scale)
        parts += [
            _text(left - 12, y + 13, f"priority {priority}", anchor="end"),
            f'<rect class="ours" x="{left}" y="{y}" width="{width:.1f}" height="16" rx="3"/>',
            _text(left + width + 8, y + 13, f"{hours[priority]:.1f} h", "quiet"),
        ]
    return _svg(top + len(hours) * step + 16, parts, "Longest wait by priority under a flood")


def _text(x: float, y: float, words: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y}" text-anchor="{anchor}">{words}</text>'


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line class="{kind}" x1="{x1:.1f}" y1="{y1}" x2="{x2:.1f}" y2="{y2}"/>'


def _dot(x: float, y: float, kind: str) -> str:
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y}" r="5" fill-opacity="0.75"/>'


def _svg(height: int, parts: list[str], title: str) -> str:
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" role="img" aria-label="{title}">'
    )
    return "\n".join((opening, f"<title>{title}</title>", STYLE, *parts, "</svg>", ""))


async def draw() -> None:
    """Measure and write both pictures."""
    began = SystemClock().monotonic()
    starts = await measure_turns()
    (PICTURES / "fairness.svg").write_text(turns_picture(starts), "utf-8")
    (PICTURES / "ageing.svg").write_text(ageing_picture(await simulate_ageing()), "utf-8")
    seconds = (SystemClock().monotonic() - began) / 1000
    print(f"wrote two pictures in {seconds:.0f} s; B's last job started after {max(starts):.3f} s")


if __name__ == "__main__":
    sys.exit(asyncio.run(draw()))
