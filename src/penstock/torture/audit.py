"""Accounting for every job after the run, and telling how it went."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec
from rich.console import Console
from rich.table import Table

from penstock.model.job import Job
from penstock.model.states import Status
from penstock.store.contract import Execution, Store

CHUNK = 500
SHOWN = 20
STRUCTURE = ("integrity", "leases", "keys", "schema", "layout", "last append")


class Findings(msgspec.Struct, kw_only=True):
    """What the audit counted; `complaints` names the first jobs that are wrong, and how."""

    acknowledged: int = 0
    completed: int = 0
    dead: int = 0
    duplicates: int = 0
    lost: int = 0
    stale_writes: int = 0
    unexplained: int = 0
    leases_lost: int = 0
    integrity: bool = True
    complaints: list[str] = []

    @property
    def clean(self) -> bool:
        """Whether every promise was kept."""
        return self.integrity and not (self.lost or self.stale_writes or self.unexplained)


class Audit:
    """Checks A, B, C and E: nothing lost, nothing unexplained, nothing stale, nothing corrupt."""

    def __init__(self, store: Store, struck: set[str], *, server_struck: bool = False) -> None:
        self.findings = Findings()
        self._store = store
        self._struck = struck
        self._server_struck = server_struck
        self._blamed: set[tuple[str, str]] = set()

    async def run(self, acknowledged: Sequence[str], effects: Path) -> Findings:
        """Look at every acknowledged job."""
        found = self.findings
        found.acknowledged = len(acknowledged)
        fences = read_effects(effects)
        for ids in chunks(acknowledged):
            jobs = {job.id: job for job in await self._store.reader.get(ids)}
            for job_id in ids:
                if job_id not in jobs:
                    self._complain("lost", f"{job_id} is not in the store")
                    continue
                history = await self._store.reader.executions(job_id)
                self._check(jobs[job_id], history, fences[job_id])
        for name, passed, detail in (await self._store.inspect()).checks:
            if name in STRUCTURE and not passed:
                self.note([detail])
        return found

    def note(self, damages: Sequence[str]) -> None:
        """Take in what is wrong with the store as a whole."""
        self.findings.integrity = self.findings.integrity and not damages
        self.findings.complaints.extend(damages)

    def _check(self, job: Job, history: list[Execution], effects: Counter[int]) -> None:
        found = self.findings
        if not job.status.terminal:
            self._complain("lost", f"{job.id} is still {job.status}")
            return
        found.completed += job.status is Status.COMPLETED
        found.dead += job.status is Status.DEAD_LETTER
        found.duplicates += max(0, effects.total() - 1)
        self._check_effects(job, effects)
        self._check_endings(job, history)
        self._check_causes(job, history, effects)

    def _check_effects(self, job: Job, effects: Counter[int]) -> None:
        if job.status is Status.COMPLETED and not effects:
            self._complain("lost", f"{job.id} is completed, but its effect is missing")
        elif job.status is Status.COMPLETED and job.fence not in effects:
            self._complain("stale_writes", f"{job.id} ended under a fence that left no effect")

    def _check_endings(self, job: Job, history: list[Execution]) -> None:
        """One terminal transition, written under the last fence, by the execution that holds it."""
        completed = [execution.fence for execution in history if execution.status == "completed"]
        expected = [job.fence] if job.status is Status.COMPLETED else []
        if completed != expected:
            self._complain("stale_writes", f"{job.id} at fence {job.fence} completed {completed}")
        if job.status is Status.COMPLETED and job.attempts != 1:
            self._complain("stale_writes", f"{job.id} was completed {job.attempts} times")
        if job.status is Status.COMPLETED and job.result != str(job.fence):
            self._complain("stale_writes", f"{job.id} has the result of fence {job.result}")
        if any(execution.fence > job.fence for execution in history):
            self._complain("stale_writes", f"{job.id} has a history past its fence {job.fence}")
        if job.progress_message not in (None, str(job.fence)):
            self._complain("stale_writes", f"{job.id} shows progress of an older fence")

    def _check_causes(self, job: Job, history: list[Execution], effects: Counter[int]) -> None:
        """A second execution needs a lease that was taken away, and that needs a struck worker.

        A fence grows by one at every claim and every taking away, and only claims are executed.
        A struck server may have granted a lease without telling: then nothing ran under it.
        """
        taken_away = (job.fence - 1) // 2
        self.findings.leases_lost += taken_away
        if max(effects.values(), default=0) > 1 or effects.total() > taken_away + 1:
            self._complain("unexplained", f"{job.id} ran under {dict(effects)}: more than leased")
        for execution in history:
            unheard = self._server_struck and execution.fence not in effects
            innocent = execution.worker not in self._struck and not unheard
            if execution.status in ("lost", "interrupted", "crashed") and innocent:
                self._complain(
                    "unexplained",
                    f"{job.id} was {execution.status} by {execution.worker}, which nobody struck",
                )

    def _complain(self, kind: str, complaint: str) -> None:
        """Blame a job, named by the complaint's first word, once for each kind of wrong."""
        blame = (kind, complaint.partition(" ")[0])
        if blame not in self._blamed:
            self._blamed.add(blame)
            setattr(self.findings, kind, getattr(self.findings, kind) + 1)
        if len(self.findings.complaints) < SHOWN:
            self.findings.complaints.append(complaint)


def read_effects(path: Path) -> dict[str, Counter[int]]:
    """How often each job left its effect, by fence."""
    effects: dict[str, Counter[int]] = defaultdict(Counter)
    for line in read_lines(path):
        job_id, _, fence = line.split()
        effects[job_id][int(fence)] += 1
    return effects


def read_lines(path: Path) -> list[str]:
    """The whole lines of a file that may not exist, or still be written."""
    if not path.exists():
        return []
    whole, _, _ = path.read_text().rpartition("\n")
    return whole.splitlines()


def chunks(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    """Slices small enough for one question to the store."""
    for start in range(0, len(ids), CHUNK):
        yield ids[start : start + CHUNK]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """The figures of one run."""

    seed: int
    url: str
    evidence: str
    seconds: float
    kills: int
    freezes: int
    terminations: int
    cuts: int
    crashes: int
    starts: int
    stale_writes_refused: int
    findings: Findings

    @property
    def passed(self) -> bool:
        """Whether the store kept its word."""
        return self.findings.clean


def show(outcome: Outcome, console: Console, *, as_json: bool) -> None:
    """Print the figures as a table or as one JSON object."""
    if as_json:
        figures = msgspec.to_builtins(outcome)
        figures |= figures.pop("findings") | {"passed": outcome.passed}
        console.out(msgspec.json.encode(figures).decode(), highlight=False)
        return
    console.print(_table(outcome))
    for complaint in outcome.findings.complaints:
        console.print(f"  {complaint}", highlight=False)
    if outcome.passed:
        console.print("[green]Every job is accounted for.[/green]")
    else:
        console.print(
            f"[red]The store broke a promise.[/red] Try again with --seed {outcome.seed}; "
            f"the evidence is in {outcome.evidence} and {outcome.url}."
        )


def _table(outcome: Outcome) -> Table:
    found = outcome.findings
    table = Table(title=f"torture, seed {outcome.seed}", show_header=False)
    table.add_column(style="bold")
    table.add_column(justify="right")
    table.add_column(style="dim")
    rows = (
        ("acknowledged", found.acknowledged, "enqueue returned"),
        ("completed", found.completed, "ran to their end"),
        ("dead letters", found.dead, "their workers died too often"),
        (
            "duplicates",
            found.duplicates,
            f"executions repeated, of {found.leases_lost} leases lost",
        ),
        ("unexplained", found.unexplained, "repeated though nobody struck the worker"),
        ("lost", found.lost, "not ended, or ended without an effect"),
        ("stale writes", found.stale_writes, f"accepted; {outcome.stale_writes_refused} refused"),
        ("kills", outcome.kills, "SIGKILL"),
        ("freezes", outcome.freezes, "SIGSTOP past the lease, then SIGCONT"),
        ("terminations", outcome.terminations, "SIGTERM, some twice"),
        ("cuts", outcome.cuts, "connections ended by the server"),
        ("crashes", outcome.crashes, "of the server, which came back"),
        ("starts", outcome.starts, "processes started"),
        ("integrity", "ok" if found.integrity else "broken", "what the store says of itself"),
        ("seconds", f"{outcome.seconds:.0f}", "from the first start to the last check"),
    )
    for name, figure, note in rows:
        bad = name in ("lost", "stale writes", "unexplained") and figure
        table.add_row(name, f"[red]{figure}[/red]" if bad else str(figure), note)
    return table
