"""The story: what is enqueued and what befalls the workers, act by act."""

import asyncio
import itertools
import os
import random
import signal
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from penstock.app.flow import group
from penstock.app.job_type import Prepared
from penstock.app.penstock import Penstock
from penstock.demo import jobs
from penstock.demo.screen import Scene, read_jobs
from penstock.model.states import Status
from penstock.model.wording import counted
from penstock.store.contract import JobFilter, WorkerInfo
from penstock.worker.respawn import tell

STOP_SECONDS = 10.0


class Fleet:
    """`penstock worker penstock.demo.jobs:app`, as a child of this process."""

    def __init__(self, url: str, log_file: Path, *, processes: int, concurrency: int) -> None:
        self._arguments = (
            "--url",
            url,
            "worker",
            "penstock.demo.jobs:app",
            f"--processes={processes}",
            f"--concurrency={concurrency}",
            "--name=demo",
            "--log-json",
        )
        self._log_file = log_file
        self._process: asyncio.subprocess.Process | None = None

    async def start(self) -> None:
        """Start the supervisor; it starts the workers."""
        with self._log_file.open("wb") as log:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                "penstock.cli",
                *self._arguments,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            )

    @property
    def failed(self) -> str | None:
        """The last thing it said, if it ended by itself."""
        if self._process is None or self._process.returncode is None:
            return None
        lines = self._log_file.read_text("utf-8", errors="replace").splitlines()
        return lines[-1] if lines else f"it exited with code {self._process.returncode}"

    async def stop(self) -> None:
        """Drain; then, if need be, at once; then, if need be, by force."""
        process = self._process
        if process is None:
            return
        for number, seconds in (
            (signal.SIGTERM, STOP_SECONDS),
            (signal.SIGTERM, 3.0),
            (signal.SIGKILL, 3.0),
        ):
            if process.returncode is not None:
                return
            tell(process, number)
            with suppress(TimeoutError):
                await asyncio.wait_for(process.wait(), seconds)


def kill(pid: int) -> bool:
    """End a process the hard way; false when it had already gone."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return False
    return True


NAMES = ("ada", "grace", "alan", "edsger", "barbara", "donald", "radia", "ken")
STREAM_SECONDS = 0.25
BURST = 2_000
INVOICES = 6
RUSH = 60
PICTURES = 6
TEXTS = 15

Act = Callable[[], Awaitable[None]]


class Story:
    """Acts at fixed parts of the time, over a steady stream of small jobs."""

    def __init__(self, app: Penstock, scene: Scene) -> None:
        self.ids: list[str] = []
        self._app = app
        self._scene = scene
        self._numbers = itertools.count(1)
        self._acts: tuple[tuple[float, Act], ...] = (
            (0.0, self._open),
            (0.10, self._bank_is_away),
            (0.24, self._one_can_never_work),
            (0.36, self._start_imports),
            (0.44, self._kill_a_worker),
            (0.58, self._flow),
            (0.64, self._no_faster_than_that),
            (0.74, self._burst),
        )

    async def run(self) -> None:
        """Play every act; the stream flows until nine tenths of the time."""
        stream = asyncio.create_task(self._stream(until=0.9))
        try:
            for part, act in self._acts:
                await self._at(part)
                await act()
            await stream
        finally:
            stream.cancel()
        self._scene.tell("No more new jobs: the workers finish what is there.")

    async def settled(self, seconds: float) -> bool:
        """Wait until every job has ended."""
        deadline = asyncio.get_running_loop().time() + seconds
        waiting = self.ids
        while asyncio.get_running_loop().time() < deadline:
            found = await read_jobs(self._app.store, waiting)
            waiting = [job.id for job in found if not job.status.terminal]
            if not waiting:
                return True
            await asyncio.sleep(0.2)
        return False

    async def _open(self) -> None:
        count = len(self._scene.workers)
        self._scene.tell(
            f"{count} workers are up: mail runs as coroutines, thumbnails in threads, "
            "rendering in processes."
        )
        length = self._scene.seconds / 3
        await self._put([jobs.render.new("trailer", length), jobs.render.new("poster", length / 2)])

    async def _bank_is_away(self) -> None:
        await self._put(
            [jobs.invoice.new(next(self._numbers), failures=1 + n % 3) for n in range(INVOICES)]
        )
        self._scene.tell(
            f"The bank is away: {INVOICES} invoices fail, wait about 1 s, 2 s, 4 s, and try again."
        )

    async def _one_can_never_work(self) -> None:
        await self._put([jobs.charge.new("A-1007")])
        self._scene.tell(
            "Order A-1007 has no customer: no retry can help, so it becomes a dead letter."
        )

    async def _start_imports(self) -> None:
        pause = self._scene.seconds / 5 / jobs.ROWS
        await self._put([jobs.import_rows.new(f"{name}.csv", pause) for name in NAMES[:4]])
        self._scene.tell("Four imports start; each saves a checkpoint every few rows.")

    async def _kill_a_worker(self) -> None:
        await self._put([self._small_job() for _ in range(RUSH)])
        await asyncio.sleep(0.1)
        victim = await self._busiest()
        if victim is None or not kill(victim.pid):
            self._scene.tell("No worker was there to kill.")
            return
        held = await self._held_by(victim.owner)
        self._scene.tell(
            f"kill -9 {victim.pid}: worker {victim.name} dies holding {counted(len(held), 'job')}."
        )
        await self._see_rescue(held)

    async def _see_rescue(self, held: list[str]) -> None:
        for _ in range(100):
            await asyncio.sleep(0.1)
            found = await read_jobs(self._app.store, held)
            free = [job for job in found if job.status is not Status.IN_PROGRESS or job.rescues]
            if len(free) == len(held):
                break
        rescued = sum(job.rescues > 0 for job in await read_jobs(self._app.store, held))
        self._scene.tell(
            f"Rescued: {rescued} that had started run again, {len(held) - rescued} that had not "
            "go on untouched. A new worker starts."
        )

    async def _flow(self) -> None:
        pictures = [jobs.thumbnail.new(f"{name}.jpg", 320) for name in NAMES[:PICTURES]]
        flow = await self._app.enqueue(group(*pictures) | jobs.montage.new())
        self.ids += flow.ids
        why = (await self._app.explain(flow.ids[-1])).summary.partition(":")[0]
        self._scene.tell(
            f"A flow: {PICTURES} thumbnails side by side, then one montage of their results. "
            f"Why does it not run yet? {why}."
        )

    async def _no_faster_than_that(self) -> None:
        await self._put([jobs.text.new(random.choice(NAMES)) for _ in range(TEXTS)])
        self._scene.tell(
            f"{TEXTS} text messages for a provider that takes 5 a second: the rest waits its turn."
        )

    async def _burst(self) -> None:
        await self._put([jobs.ping.new(n) for n in range(BURST)])
        await self._put([jobs.render.new("sequel", self._scene.seconds / 8)])
        self._scene.tell(f"{BURST:,} jobs at once, enqueued in one transaction.")

    async def _stream(self, until: float) -> None:
        while self._scene.elapsed < until * self._scene.seconds:
            await self._put([self._small_job() for _ in range(random.randint(4, 10))])
            await asyncio.sleep(STREAM_SECONDS)

    def _small_job(self) -> Prepared[str]:
        number = next(self._numbers)
        if random.random() < 0.6:
            return jobs.mail.new(f"{random.choice(NAMES)}@example.com")
        return jobs.thumbnail.new(f"photo-{number}.jpg", random.choice((160, 320, 640)))

    async def _at(self, part: float) -> None:
        await asyncio.sleep(max(0.0, part * self._scene.seconds - self._scene.elapsed))

    async def _put(self, prepared: Sequence[Prepared[Any]]) -> None:
        handles = await self._app.enqueue_many(prepared)
        self.ids += [handle.id for handle in handles]
        self._scene.enqueued = len(self.ids)

    async def _busiest(self) -> WorkerInfo | None:
        """The worker of ours with the most imports, whose checkpoints will then show."""
        mine = {worker.owner: worker for worker in self._scene.workers if worker.name[:4] == "demo"}
        imports = await self._app.store.reader.find(
            JobFilter(type=jobs.import_rows.name, statuses=(Status.IN_PROGRESS,))
        )
        holders = Counter(job.lease_owner for job in imports if job.lease_owner in mine)
        owner = next((owner for owner, _ in holders.most_common(1)), next(iter(mine), None))
        return mine.get(owner or "")

    async def _held_by(self, owner: str) -> list[str]:
        running = await self._app.store.reader.find(
            JobFilter(statuses=(Status.IN_PROGRESS,), limit=1000)
        )
        return [job.id for job in running if job.lease_owner == owner]
