"""`python -m proof.bench.agents`: how many jobs of the agent workers one worker runs, and how soon.

Jobs are of six types, mixed as a platform enqueues them, and do what they do in production: a
webhook is looked up, signed and logged, texts are embedded and their vectors kept, memories are
consolidated, sessions expire, tenants are weighed. What is outside is stubbed: a receiver answers
204 at once, and no model is asked. The limits of the types for each worker are lifted. They are run
by one process and by one for each core, as `penstock worker --processes 2` would.

How soon a job is picked up is the time from its enqueue until its handler starts, while it arrives
at a steady rate at a worker that runs about fifty jobs at once.
"""

import argparse
import asyncio
import os
import random
import re
import sys
import tempfile
import time
from multiprocessing import get_context
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from penstock import Penstock, Settings
from penstock.apps.agents import options
from penstock.apps.agents.vectors.embedder import load_embedder
from penstock.worker.worker import Worker
from proof.bench.report import line, print_figures_only

if TYPE_CHECKING:
    from multiprocessing.queues import SimpleQueue
    from multiprocessing.synchronize import Barrier

TENANTS = ("acme", "globex", "initech", "umbrella")
SHARES = {
    "webhook-dispatch": 50,
    "embedding-batch": 20,
    "memory-consolidation": 10,
    "session-cleanup": 10,
    "memory-cleanup": 5,
    "quota-check": 5,
}
"""Of a hundred jobs."""

AT_ONCE = 50
HELD_SECONDS = 0.1
"""How long the stubbed receiver takes where it is measured how soon jobs are picked up."""

WORDS = re.findall(
    r"\w+", "the agent met a user who prefers tea in Berlin and asked for a report on sales"
)


def lift_limits() -> None:
    """Let one worker run as many jobs of a type as come; before the types are registered."""
    for name, each in options.OPTIONS.items():
        options.OPTIONS[name] = replace(each, per_worker=1_000, rate_per_worker=None)


def stub_receiver(seconds: float) -> None:
    """Have every delivery answered here, after so long."""
    from penstock.apps.agents.webhooks import dispatch
    from penstock.apps.agents.webhooks.sending import Answer

    async def answer(*_: Any, **__: Any) -> Answer:
        if seconds:
            await asyncio.sleep(seconds)
        return Answer(status=204)

    setattr(dispatch, "post", answer)  # noqa: B010


def opened(folder: str) -> Penstock:
    """An application on a file of its own."""
    own = {"folder": f"{folder}/agents", "schedules": False, "learning": {"automatic": False}}
    settings = Settings(extension={"agents": own}, concurrency=AT_ONCE)
    return Penstock(f"sqlite:///{folder}/work.db", extensions=["agents"], settings=settings)


class Mix:
    """Calls of all types in turn, with data of the tenants they belong to."""

    def __init__(self, app: Penstock) -> None:
        self._app = app
        self._chance = random.Random(17)
        self._webhooks: dict[str, str] = {}
        self._memories: dict[str, list[str]] = {}

    async def prepare(self) -> None:
        """Give each tenant a webhook, memories and sessions."""
        agents = self._app.agents
        for tenant in TENANTS:
            made = await agents.webhooks.add("https://example.com/hook", tenant=tenant)
            self._webhooks[tenant] = made.webhook.id
            known = [
                await agents.memories.add(self._sentence(12), tenant=tenant, user=f"u{n}")
                for n in range(20)
            ]
            self._memories[tenant] = [each.memory.id for each in known]
            for n in range(20):
                await agents.sessions.open(tenant=tenant, user=f"u{n}")

    def calls(self, count: int) -> list[Any]:
        """So many calls, the types in their shares."""
        names = self._chance.choices(list(SHARES), list(SHARES.values()), k=count)
        return [self.call(name) for name in names]

    def call(self, name: str) -> Any:
        """A call of one type, of any tenant."""
        tenant = self._chance.choice(TENANTS)
        return self._app.agents.new(name, self._data(name, tenant), tenant=tenant)

    def _data(self, name: str, tenant: str) -> dict[str, Any]:
        if name == "webhook-dispatch":
            payload = {"event": "order.paid", "text": self._sentence(20)}
            return {"webhookId": self._webhooks[tenant], "payload": payload}
        if name == "embedding-batch":
            items = [
                {"sourceId": str(self._chance.getrandbits(64)), "text": self._sentence(20)}
                for _ in range(4)
            ]
            return {"namespace": "notes", "items": items}
        if name == "memory-consolidation":
            return {"memoryIds": self._chance.sample(self._memories[tenant], 2)}
        return {}

    def _sentence(self, words: int) -> str:
        return " ".join(self._chance.choices(WORDS, k=words))


def throughput(count: int, processes: int) -> float:
    """Run so many jobs with a worker in so many processes; how many a second."""
    context = get_context("spawn")
    begin, counts = context.Barrier(processes + 1), context.SimpleQueue()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(_enqueue(folder, count))
        given = folder, begin, counts
        started = [context.Process(target=_work, args=given) for _ in range(processes)]
        for process in started:
            process.start()
        begin.wait()
        began = time.perf_counter()
        for process in started:
            process.join()
        took = time.perf_counter() - began
        completed, failed = map(sum, zip(*(counts.get() for _ in started), strict=True))
        assert (completed, failed) == (count, 0), (completed, failed)
    return count / took


async def _enqueue(folder: str, count: int) -> None:
    async with opened(folder) as app:
        mix = Mix(app)
        await mix.prepare()
        calls = mix.calls(count)
        for first in range(0, count, 1_000):
            await app.enqueue_many(calls[first : first + 1_000])


def _work(folder: str, begin: "Barrier", counts: "SimpleQueue[tuple[int, int]]") -> None:
    """Run what is there, from when all processes are ready."""
    print_figures_only()
    lift_limits()
    stub_receiver(0)

    async def run() -> tuple[int, int]:
        async with opened(folder) as app:
            load_embedder(app.extensions.settings("agents").embedder).embed(["loaded"])
            worker = Worker(app, burst=True, upkeep=False)
            begin.wait()
            await worker.run()
            return worker.counts["completed"], worker.counts["failed"]

    counts.put(asyncio.run(run()))


async def pickup(count: int, rate: float) -> tuple[float, float]:
    """Enqueue so many jobs at a rate; the median and the 95th percentile of their wait, in ms."""
    stub_receiver(HELD_SECONDS)
    with tempfile.TemporaryDirectory() as folder:
        async with opened(folder) as app:
            mix = Mix(app)
            await mix.prepare()
            worker = Worker(app, upkeep=False)
            running = asyncio.create_task(worker.run())
            await worker.started()
            calls = [mix.call("webhook-dispatch") for _ in range(count)]
            began = time.perf_counter()
            for number, call in enumerate(calls):
                await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
                await app.enqueue(call)
            while worker.counts["completed"] < count:  # noqa: ASYNC110
                await asyncio.sleep(0.05)
            worker.stop()
            await running
            waits = [(await app.executions(call.job.id))[0].wait_ms or 0 for call in calls]
    waits.sort()
    return float(waits[len(waits) // 2]), float(waits[int(len(waits) * 0.95)])


def main() -> None:
    """Measure, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3)
    given = parser.parse_args()
    print_figures_only()
    lift_limits()
    found: dict[int, list[float]] = {1: [], os.cpu_count() or 1: []}
    for _ in range(given.repeat):
        for processes, rates in found.items():
            rates.append(throughput(given.jobs, processes))
    median, p95 = asyncio.run(pickup(2_000, 0.8 * AT_ONCE / HELD_SECONDS))
    rows = (
        ("", "measured", "target"),
        ("---", "---", "---"),
        *(
            (
                f"jobs of six types, mixed; processes: {processes}",
                f"{sorted(rates)[len(rates) // 2]:,.0f} /s",
                "≥ 1,000",
            )
            for processes, rates in found.items()
        ),
        (f"pickup with {AT_ONCE} at once, p95", f"{p95:.0f} ms (median {median:.0f})", "< 100 ms"),
    )
    for row in rows:
        sys.stdout.write(f"{line(row)}\n")


if __name__ == "__main__":
    main()
