"""The rules by which an installation says that something is wrong."""

from enum import StrEnum

from msgspec import Struct

from penstock.model.spans import span

CRITICAL_DEAD_LETTER = "critical_dead_letter"
HOUR = 3_600.0


class Severity(StrEnum):
    """How much it matters."""

    WARNING = "warning"
    CRITICAL = "critical"


class Unit(StrEnum):
    """What a figure counts."""

    JOBS = "jobs"
    LETTERS = "dead letters"
    WORKERS = "workers"
    LEASES = "leases"
    SECONDS = "seconds"
    PERCENT = "percent"


class Metric(StrEnum):
    """What a rule measures."""

    QUEUE_DEPTH = "queue_depth"
    OLDEST_JOB = "oldest_job"
    SUCCESS_RATE = "success_rate"
    FAILURE_RATE = "failure_rate"
    DEAD_LETTERS = "dead_letters"
    DURATION_P95 = "duration_p95"
    WAIT_P95 = "wait_p95"
    WORKERS_DOWN = "workers_down"
    WORKERS_ALIVE = "workers_alive"
    UNSERVED_JOBS = "unserved_jobs"
    LEASE_EXPIRIES = "lease_expiries"
    BACKPRESSURE = "backpressure"
    CRITICAL_DEAD = "critical_dead"


class Measure(Struct, frozen=True):
    """What a metric means, in which unit, and on which side of a threshold it is wrong.

    Where it is `reached`, the threshold itself is wrong already.
    """

    meaning: str
    unit: Unit
    below: bool = False
    windowed: bool = False
    reached: bool = False


MEASURES: dict[Metric, Measure] = {
    Metric.QUEUE_DEPTH: Measure("jobs that are queued", Unit.JOBS),
    Metric.OLDEST_JOB: Measure("how long the oldest queued job has waited", Unit.SECONDS),
    Metric.SUCCESS_RATE: Measure(
        "jobs that completed, of those that ended", Unit.PERCENT, below=True, windowed=True
    ),
    Metric.FAILURE_RATE: Measure(
        "jobs that became dead letters, of those that ended", Unit.PERCENT, windowed=True
    ),
    Metric.DEAD_LETTERS: Measure("open dead letters", Unit.LETTERS),
    Metric.DURATION_P95: Measure(
        "how long 95 % of executions took at most", Unit.SECONDS, windowed=True
    ),
    Metric.WAIT_P95: Measure("how long 95 % of jobs waited at most", Unit.SECONDS, windowed=True),
    Metric.WORKERS_DOWN: Measure("workers that fell silent", Unit.WORKERS),
    Metric.WORKERS_ALIVE: Measure("workers that are alive", Unit.WORKERS, below=True),
    Metric.UNSERVED_JOBS: Measure("queued jobs of types that no worker runs", Unit.JOBS),
    Metric.LEASE_EXPIRIES: Measure("leases that ran out", Unit.LEASES, windowed=True),
    Metric.BACKPRESSURE: Measure(
        "how full the fullest queue is, of its limit", Unit.PERCENT, reached=True
    ),
    Metric.CRITICAL_DEAD: Measure("dead letters of a critical type", Unit.LETTERS),
}
"""Every metric; those with a window are summed up over the rule's window."""


class Rule(Struct, frozen=True, kw_only=True):
    """When something is wrong, for how long it must be, and what to do; times are in seconds.

    It fires when its figure is above its threshold, or below it where less is worse. `queue` and
    `type` narrow it down. Rates count only over at least `at_least` jobs that ended.
    """

    name: str
    metric: Metric
    threshold: float
    severity: Severity
    action: str
    duration: float = 0
    window: float = HOUR
    at_least: int = 0
    cool_down: float = 300
    route: str | None = None
    queue: str | None = None
    type: str | None = None

    def breached(self, value: float) -> bool:
        """Whether a figure is on the wrong side."""
        measure = MEASURES[self.metric]
        if measure.reached and value == self.threshold:
            return True
        return value < self.threshold if measure.below else value > self.threshold

    @property
    def condition(self) -> str:
        """What it says, in a few words: `more than 1,000 jobs`."""
        measure = MEASURES[self.metric]
        side = "less than" if measure.below else "at least" if measure.reached else "more than"
        told = f"{side} {figure(measure.unit, self.threshold)}"
        if self.fires_at_one:
            told = "any"
        if self.at_least:
            told += f" of at least {self.at_least:,}"
        return f"{told} in {span(self.window * 1000)}" if measure.windowed else told

    @property
    def fires_at_one(self) -> bool:
        """Whether a single one is too many."""
        return not self.threshold and not MEASURES[self.metric].below

    @property
    def about(self) -> str:
        """What it is narrowed down to, if it is: ` in queue 'mail'`."""
        queue = f" in queue {self.queue!r}" if self.queue else ""
        return queue + (f" of type {self.type!r}" if self.type else "")


RULES: tuple[Rule, ...] = (
    Rule(
        name="high_queue_depth",
        metric=Metric.QUEUE_DEPTH,
        threshold=1_000,
        duration=60,
        severity=Severity.WARNING,
        action="Workers do not keep up; consider more of them, or see what slows them down.",
    ),
    Rule(
        name="critical_queue_depth",
        metric=Metric.QUEUE_DEPTH,
        threshold=5_000,
        duration=60,
        severity=Severity.CRITICAL,
        action="Add workers at once, or hold back what fills the queue.",
    ),
    Rule(
        name="old_jobs",
        metric=Metric.OLDEST_JOB,
        threshold=HOUR,
        severity=Severity.WARNING,
        action="Jobs wait too long; ask `penstock jobs explain` about the oldest.",
    ),
    Rule(
        name="low_success_rate",
        metric=Metric.SUCCESS_RATE,
        threshold=95,
        at_least=100,
        severity=Severity.CRITICAL,
        action="See which types fail, in `penstock stats` and `penstock dead groups`.",
    ),
    Rule(
        name="high_failure_rate",
        metric=Metric.FAILURE_RATE,
        threshold=10,
        at_least=100,
        severity=Severity.WARNING,
        action="Investigate the failures, the largest group first.",
    ),
    Rule(
        name="dead_letters",
        metric=Metric.DEAD_LETTERS,
        threshold=10,
        severity=Severity.WARNING,
        action="Review the dead letters; they need a person.",
    ),
    Rule(
        name="dead_letter_accumulation",
        metric=Metric.DEAD_LETTERS,
        threshold=50,
        severity=Severity.CRITICAL,
        action="Stop what causes them, then replay a few before releasing the rest.",
    ),
    Rule(
        name=CRITICAL_DEAD_LETTER,
        metric=Metric.CRITICAL_DEAD,
        threshold=0,
        severity=Severity.CRITICAL,
        action="Look at the dead letter now, correct its cause, and requeue it.",
    ),
    Rule(
        name="slow_jobs",
        metric=Metric.DURATION_P95,
        threshold=60,
        severity=Severity.WARNING,
        action="Find the slow types in `penstock stats`, and split or speed up their jobs.",
    ),
    Rule(
        name="worker_down",
        metric=Metric.WORKERS_DOWN,
        threshold=0,
        duration=30,
        severity=Severity.CRITICAL,
        action="Restart the worker; its jobs are rescued meanwhile.",
    ),
    Rule(
        name="unserved_jobs",
        metric=Metric.UNSERVED_JOBS,
        threshold=0,
        duration=300,
        severity=Severity.WARNING,
        action="Start a worker that knows these types, or deploy the code that has them.",
    ),
    Rule(
        name="lease_expiries",
        metric=Metric.LEASE_EXPIRIES,
        threshold=5,
        window=900,
        severity=Severity.WARNING,
        action="Workers die or are cut off; look at their logs, memory and network.",
    ),
    Rule(
        name="queue_nearly_full",
        metric=Metric.BACKPRESSURE,
        threshold=80,
        duration=60,
        severity=Severity.WARNING,
        action="Add workers before the queue refuses jobs.",
    ),
    Rule(
        name="queue_full",
        metric=Metric.BACKPRESSURE,
        threshold=100,
        severity=Severity.CRITICAL,
        action="The queue refuses jobs less urgent than 5; add workers or raise its limit.",
    ),
)
"""The rules of an installation that says nothing else."""

OFFERED: tuple[Rule, ...] = (
    Rule(
        name="busy_queue",
        metric=Metric.QUEUE_DEPTH,
        threshold=100,
        duration=60,
        severity=Severity.WARNING,
        action="More waits than usual; see whether workers keep up.",
    ),
    Rule(
        name="high_latency",
        metric=Metric.DURATION_P95,
        threshold=10,
        severity=Severity.WARNING,
        action="Find the slow types in `penstock stats`.",
    ),
    Rule(
        name="final_failure",
        metric=Metric.DEAD_LETTERS,
        threshold=0,
        severity=Severity.WARNING,
        action="A job was given up; look at it in `penstock dead groups`.",
    ),
)
"""Stricter rules, for quiet installations: each holds where the settings name it."""


def figure(unit: Unit, value: float) -> str:
    """A value with its unit: `1,200 jobs`, `1 h 3 min`, `92.5 %`."""
    match unit:
        case Unit.SECONDS:
            return span(value * 1000)
        case Unit.PERCENT:
            return f"{value:.1f} %".replace(".0 %", " %")
        case _:
            noun = unit.value if value != 1 else unit.value.removesuffix("s")
            return f"{value:,.0f} {noun}"
