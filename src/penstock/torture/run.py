"""`penstock torture`: one run from the first enqueue to the verdict."""

import asyncio
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import msgspec
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from penstock.app.penstock import Penstock
from penstock.config import load_settings
from penstock.model.redact import without_password
from penstock.model.states import Status
from penstock.model.store_errors import StoreError
from penstock.store.contract import JobFilter, Store
from penstock.torture.audit import Audit, Outcome, chunks, read_lines, show
from penstock.torture.crew import Chaos, Crew
from penstock.torture.ground import FindGround, Ground
from penstock.torture.plan import Blow, make_plan
from penstock.torture.producer import Order
from penstock.torture.work import QUEUE, TARGET
from penstock.worker.process import WorkerSpec


class Remaining:
    """The acknowledged jobs that have not ended, as far as is known."""

    def __init__(self, store: Store) -> None:
        self.ended = 0
        self._store = store
        self._known = 0
        self._open: list[str] = []
        self._moved_at = time.monotonic()

    @property
    def none(self) -> bool:
        """Whether all known jobs have ended."""
        return not self._open

    @property
    def stuck_for(self) -> float:
        """For how many seconds nothing has ended, without an excuse."""
        return time.monotonic() - self._moved_at

    def excuse(self) -> None:
        """Count anew from here: while workers are struck nothing may end for a long time."""
        self._moved_at = time.monotonic()

    async def look(self, acknowledged: list[str]) -> None:
        """Ask again about those that had not ended."""
        self._open += acknowledged[self._known :]
        self._known = len(acknowledged)
        still = []
        for ids in chunks(self._open):
            ended: set[str] = set()
            with suppress(StoreError):  # its server is away
                ended = {j.id for j in await self._store.reader.get(ids) if j.status.terminal}
            still += [i for i in ids if i not in ended]
        if len(still) != len(self._open):
            self._moved_at = time.monotonic()
        self._open = still
        self.ended = self._known - len(still)


SECONDS_PER_KILL = 0.75
SHORTEST_SECONDS = 3.0
STUCK_SECONDS = 90.0
STOP_SECONDS = 30.0
LOOK_SECONDS = 0.2
BUSY_LOOK = 100
SHORTEST_FREEZE_SECONDS = 3.0
CENTURY = 100 * 365 * 86_400.0

# Workers die so often here that three deaths do not make a job poison. And a self-test never
# prunes anything of a user's own store.
SETTINGS = {
    "heartbeat_interval": 1.0,
    "max_rescues": 20,
    "concurrency": 4,
    "prefetch": 20,
    "drain_timeout": 5.0,
    "keep_completed": CENTURY,
    "keep_cancelled": CENTURY,
    "keep_dead": CENTURY,
    "keep_last": {},
}


def torture(
    jobs: int,
    kills: int,
    seconds: float | None,
    ground: FindGround,
    seed: int | None,
    *,
    as_json: bool,
    console: Console | None,
) -> int:
    """One run; the exit code for the shell."""
    folder = Path(tempfile.mkdtemp(prefix="penstock-torture-"))
    chosen = random.SystemRandom().randrange(2**32) if seed is None else seed
    screen = console or Console()
    if not as_json:
        screen.print(f"Seed {chosen}: the same seed makes the same plan.", highlight=False)
    hidden = as_json or not screen.is_terminal
    with ground(folder) as place:
        run = Run(
            place=place,
            folder=folder,
            jobs=jobs,
            kills=kills,
            seconds=seconds or max(SHORTEST_SECONDS, kills * SECONDS_PER_KILL),
            seed=chosen,
        )
        outcome = asyncio.run(run.outcome(_progress(screen, hidden=hidden)))
    show(outcome, screen, as_json=as_json)
    if outcome.passed:
        shutil.rmtree(folder, ignore_errors=True)
    return 0 if outcome.passed else 1


class Run:
    """One producer, four workers, and somebody who means them harm."""

    def __init__(
        self, *, place: Ground, folder: Path, jobs: int, kills: int, seconds: float, seed: int
    ) -> None:
        self._place = place
        self._folder = folder
        self._jobs = jobs
        self._kills = kills
        self._seconds = seconds
        self._seed = seed
        self._log = folder / "workers.log"
        self._acknowledged = folder / "acknowledged"
        self._effects = folder / "effects"

    async def outcome(self, progress: Progress) -> Outcome:
        """Run, wait until everything has ended, and account for it."""
        began = time.monotonic()
        place = self._place
        async with Penstock(settings=load_settings().replace(**place.settings)) as app:
            crew = Crew(self._spec(), self._log)
            chaos = self._chaos(app.store, crew)
            try:
                async with self._kept_alive(crew):
                    await self._flow(app.store, chaos, progress)
                chaos.thaw()
                await asyncio.to_thread(crew.end, STOP_SECONDS)
            finally:
                chaos.thaw()
                crew.kill()
            for owner in chaos.struck:
                await app.store.workers.forget(owner)
            audit = Audit(app.store, chaos.struck, server_struck=chaos.struck_server)
            findings = await audit.run(read_lines(self._acknowledged), self._effects)
        audit.note(await asyncio.to_thread(place.autopsy))
        refused = sum("stale_settlement" in line for line in read_lines(self._log))
        return Outcome(
            seed=self._seed,
            url=without_password(place.url),
            evidence=str(self._folder),
            seconds=round(time.monotonic() - began, 1),
            kills=chaos.done[Blow.KILL],
            freezes=chaos.done[Blow.FREEZE],
            terminations=chaos.done[Blow.TERM] + chaos.done[Blow.TERM_TWICE],
            cuts=chaos.done[Blow.CUT] + chaos.done[Blow.CUT_DISPATCH],
            crashes=chaos.done[Blow.CRASH] + chaos.done[Blow.CRASH_DISPATCH],
            starts=crew.started,
            stale_writes_refused=refused,
            findings=findings,
        )

    def _spec(self) -> WorkerSpec:
        lease = self._place.lease_seconds
        settings = SETTINGS | {"lease": lease, "renew_interval": lease / 4} | self._place.settings
        return WorkerSpec(target=TARGET, settings=settings)

    def _chaos(self, store: Store, crew: Crew) -> Chaos:
        async def working() -> set[str]:
            return {worker.owner for worker in await store.workers.list()}

        async def busy() -> set[str]:
            running = JobFilter(statuses=(Status.IN_PROGRESS,), queue=QUEUE, limit=BUSY_LOOK)
            jobs = await store.reader.find(running)
            return {job.lease_owner for job in jobs if job.lease_owner and job.started_at}

        harm = self._place.harm
        return Chaos(
            crew,
            make_plan(self._kills, self._seconds, self._seed, harm),
            freeze_seconds=max(SHORTEST_FREEZE_SECONDS, 2 * self._place.lease_seconds),
            harm=harm,
            working=working,
            busy=busy,
        )

    @asynccontextmanager
    async def _kept_alive(self, crew: Crew) -> AsyncGenerator[None]:
        async def keep() -> None:
            while True:
                crew.revive()
                await asyncio.sleep(LOOK_SECONDS / 4)

        task = asyncio.create_task(keep())
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task

    async def _flow(self, store: Store, chaos: Chaos, progress: Progress) -> None:
        """Produce and destroy until both are done, then until the last job has ended."""
        producer = self._produce()
        striking = asyncio.create_task(chaos.run())
        remaining = Remaining(store)
        try:
            with progress:
                bar = progress.add_task("jobs ended", total=self._jobs)
                hits = progress.add_task("kills", total=self._kills)
                while not (producer.poll() is not None and striking.done() and remaining.none):
                    await asyncio.sleep(LOOK_SECONDS)
                    await remaining.look(read_lines(self._acknowledged))
                    progress.update(bar, completed=remaining.ended)
                    progress.update(hits, completed=chaos.done[Blow.KILL])
                    if not striking.done():
                        remaining.excuse()
                    elif remaining.stuck_for > STUCK_SECONDS:
                        break
            await striking
        finally:
            striking.cancel()
            producer.kill()
            producer.wait()

    def _produce(self) -> "subprocess.Popen[bytes]":
        order = Order(
            store=self._place.settings,
            acknowledged=str(self._acknowledged),
            effects=str(self._effects),
            jobs=self._jobs,
            seconds=self._seconds,
            seed=self._seed,
        )
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                "penstock.torture.producer",
                msgspec.json.encode(order).decode(),
            ],
            stdin=subprocess.DEVNULL,
        )


def _progress(console: Console, *, hidden: bool) -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=hidden,
    )
