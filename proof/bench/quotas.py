"""`python -m proof.bench.quotas`: what quotas add to an enqueue.

The same jobs are enqueued with the agent workers left out, switched on without a quota, and with a
quota for the tenant, in turns, so that the machine's mood is the same for all. Fifty callers at
once share commits, as busy programs do; what is compared is processor time, of this process alone.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

from penstock import Penstock, Settings
from proof.bench.report import line

TENANT = "bench"
CALLERS = 50
WAYS = ("without agents", "without a quota", "with a quota")


async def main(jobs: int, turns: int) -> None:
    """Measure, and say what was seen."""
    seconds: dict[str, list[float]] = {way: [] for way in WAYS}
    with tempfile.TemporaryDirectory() as folder:
        async with AsyncExitStack() as opened:
            apps = {way: await opened.enter_async_context(_app(way, Path(folder))) for way in WAYS}
            await apps[WAYS[-1]].agents.quotas.set(TENANT, "jobs", 1e9)
            for turn in range(turns + 1):
                for way, app in apps.items():
                    spent = await _enqueue(app, jobs)
                    if turn:  # the first one warms up
                        seconds[way].append(spent)
    usual = statistics.median(seconds[WAYS[0]])
    for row in (("", "measured", "more"), ("---", "---", "---")):
        sys.stdout.write(f"{line(row)}\n")
    for way, each in seconds.items():
        spent = statistics.median(each)
        told = f"{1e6 * spent / jobs:.1f} µs a job, {jobs / spent:,.0f} jobs/s of one core"
        sys.stdout.write(f"{line([way, told, f'{spent / usual - 1:+.1%}'])}\n")


def _app(way: str, folder: Path) -> Penstock:
    enabled = [] if way == WAYS[0] else ["agents"]
    settings = Settings(extension={"agents": {"schedules": False}} if enabled else {})
    url = f"sqlite:///{folder}/{way.replace(' ', '-')}.db"
    app = Penstock(url, extensions=enabled, settings=settings)

    @app.job(name="work")
    async def work(number: int) -> None: ...

    return app


async def _enqueue(app: Penstock, jobs: int) -> float:
    """Enqueue jobs one by one, from several callers at once; the processor time it took."""
    work = app.find_type("work").options(tenant=TENANT)
    numbers = iter(range(jobs))

    async def caller() -> None:
        for number in numbers:
            await work.enqueue(number)

    before = time.process_time()
    await asyncio.gather(*(caller() for _ in range(CALLERS)))
    return time.process_time() - before


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--turns", type=int, default=5)
    given = parser.parse_args(sys.argv[1:])
    asyncio.run(main(given.jobs, given.turns))
