"""The rules that say when something is wrong, and what an installation may change about them."""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import asdict, replace

from penstock.model.errors import NOT_SHOWN, InvalidOption
from penstock.model.wording import span

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

    Where it is `reached`, the threshold itself is wrong already. A unit may be any noun in plural.
    """

    meaning: str
    unit: Unit | str
    below: bool = False
    windowed: bool = False
    reached: bool = False


MEASURES: Mapping[str, Measure] = {
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
"""Our own metrics; those with a window are summed up over the rule's window."""


class Rule(Struct, frozen=True, kw_only=True):
    """When something is wrong, for how long it must be, and what to do; times are in seconds.

    It fires when its figure is above its threshold, or below it where less is worse. `queue` and
    `type` narrow it down. Rates count only over at least `at_least` jobs that ended. `measured` is
    what its metric means if that is an extension's.
    """

    name: str
    metric: str
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
    measured: Measure | None = None

    @property
    def measure(self) -> Measure:
        """What its metric means."""
        return self.measured or MEASURES[self.metric]

    def breached(self, value: float) -> bool:
        """Whether a figure is on the wrong side."""
        measure = self.measure
        if measure.reached and value == self.threshold:
            return True
        return value < self.threshold if measure.below else value > self.threshold

    @property
    def condition(self) -> str:
        """What it says, in a few words: `more than 1,000 jobs`."""
        measure = self.measure
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
        return not self.threshold and not self.measure.below

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


def figure(unit: Unit | str, value: float) -> str:
    """A value with its unit: `1,200 jobs`, `1 h 3 min`, `92.5 %`."""
    match unit:
        case Unit.SECONDS:
            return span(value * 1000)
        case Unit.PERCENT:
            return f"{value:.1f} %".replace(".0 %", " %")
        case _:
            noun = str(unit) if value != 1 else unit.removesuffix("s")
            return f"{value:,.0f} {noun}"


EVERY_TYPE = "*"
Seconds = Annotated[float, Meta(ge=0, le=30 * 86_400)]
Window = Annotated[float, Meta(ge=60, le=30 * 86_400)]

_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_ROUTE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,39}")
_BY_TYPE: set[str] = {metric for metric, measure in MEASURES.items() if measure.windowed}
_BY_QUEUE: set[str] = {Metric.QUEUE_DEPTH, Metric.OLDEST_JOB, Metric.BACKPRESSURE, *_BY_TYPE}
_KNOWN = {rule.name: rule for rule in (*RULES, *OFFERED)}


class RuleSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is different about a rule, or all about a new one; times are in seconds."""

    enabled: bool = True
    metric: str | None = None
    threshold: float | None = None
    severity: Severity | None = None
    action: Annotated[str, Meta(max_length=500)] | None = None
    duration: Seconds | None = None
    window: Window | None = None
    at_least: Annotated[int, Meta(ge=0)] | None = None
    cool_down: Seconds | None = None
    route: str | None = None
    queue: str | None = None
    type: str | None = None

    @property
    def changes(self) -> dict[str, object]:
        """What it says of the rule itself."""
        found = {name: value for name, value in asdict(self).items() if value is not None}
        del found["enabled"]
        return found


class AlertSettings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Rules that differ, routes to people, and the types whose every death matters.

    A rule that names no route, or one that an extension would like and is not there, takes
    `critical_route` if it is critical, else `route`, else the first one.

    A route is one URL of apprise or several; `${NAME}` in it stands for a variable of the
    environment, and `${file:PATH}` for what a file holds. `critical_types` may be `["*"]`.
    """

    enabled: bool = True
    cool_down: Seconds | None = None
    route: str | None = None
    critical_route: str | None = None
    routes: dict[str, str | tuple[str, ...]] = {}
    critical_types: tuple[str, ...] = ()
    rules: dict[str, RuleSettings] = {}

    def __post_init__(self) -> None:
        named = {f"rule {name!r}": rule.route for name, rule in self.rules.items()}
        named |= {"'route'": self.route, "'critical_route'": self.critical_route}
        for whose, route in named.items():
            if route is not None and route not in self.routes:
                known = ", ".join(self.routes) or "none is named"
                raise ValueError(f"{whose} names the route {route!r}; known are: {known}")
        for name, urls in self.routes.items():
            if not _ROUTE.fullmatch(name):
                raise ValueError(f"a route's name is a word, and {name[:64]!r} is not")
            if not _urls(urls) or not all(_looks_like_a_url(url) for url in _urls(urls)):
                raise ValueError(f"route {name!r} must be made of URLs such as json://host/path")
        for name, changed in self.rules.items():
            _check(name, changed, _KNOWN)

    def standing(
        self, rules: Sequence[Rule] = RULES, measures: Mapping[str, Measure] = MEASURES
    ) -> list[Rule]:
        """The rules that hold, those of the installation last.

        `rules` and `measures` are those of all extensions: only now it is known whether somebody
        has a rule that the settings change, and measures what they name.
        """
        brought = {rule.name: rule for rule in (*rules, *OFFERED)}
        for name, changed in self.rules.items():
            try:
                _check(name, changed, brought)
                _check_known(name, changed, brought, measures)
            except ValueError as error:
                raise InvalidOption("alerts", NOT_SHOWN, f"a valid setting ({error})") from None
        if not self.enabled:
            return []
        named = {name: found for name, found in self.rules.items() if found.enabled}
        off = self.rules.keys() - named.keys()
        chosen = [rule for rule in OFFERED if rule.name in named]
        known = [self._changed(rule) for rule in (*rules, *chosen) if rule.name not in off]
        own = [_own(name, found) for name, found in named.items() if name not in brought]
        return [self._routed(_measured(rule, measures)) for rule in (*known, *own)]

    def urls(self, route: str) -> tuple[str, ...]:
        """The URLs of a route, secrets not filled in; none if there is no such route."""
        return _urls(self.routes.get(route, ()))

    def _changed(self, rule: Rule) -> Rule:
        if self.cool_down is not None:
            rule = replace(rule, cool_down=self.cool_down)
        changed = self.rules.get(rule.name)
        return rule if changed is None else replace(rule, **changed.changes)

    def _routed(self, rule: Rule) -> Rule:
        if rule.route in self.routes:
            return rule
        chosen = self.critical_route if rule.severity is Severity.CRITICAL else None
        return replace(rule, route=chosen or self.route or next(iter(self.routes), None))


def shown(url: str) -> str:
    """A route's URL as anybody may see it: which service, and nothing else."""
    service, mark, _ = url.partition("://")
    return f"{service}://***" if mark and "$" not in service else "***"


def _check(name: str, changed: RuleSettings, known: Mapping[str, Rule]) -> None:
    """Refuse what no extension could make right."""
    if not _NAME.fullmatch(name):
        raise ValueError(f"a rule's name is made of a-z, 0-9 and _, and {name[:64]!r} is not")
    rule = known.get(name)
    metric = changed.metric if rule is None else rule.metric
    if changed.metric not in (None, metric):
        raise ValueError(f"rule {name!r} measures {metric}; name a rule of your own")
    if rule is None and metric == Metric.CRITICAL_DEAD:
        raise ValueError(f"rule {name!r} cannot measure {metric}; use critical_types")
    for option, allowed in (("queue", _BY_QUEUE), ("type", _BY_TYPE)):
        ours = metric in MEASURES and metric not in allowed
        if ours and getattr(changed, option) is not None:
            raise ValueError(f"rule {name!r} measures {metric}, which no {option} narrows down")


def _check_known(
    name: str, changed: RuleSettings, known: Mapping[str, Rule], measures: Mapping[str, Measure]
) -> None:
    """Refuse a rule that nobody brought, if it does not say all about itself, and its metric."""
    if name in known or not changed.enabled:
        return
    if changed.metric is None or changed.threshold is None:
        listed = ", ".join(known)
        raise ValueError(
            f"rule {name!r} is new and needs a metric and a threshold; known rules are: {listed}"
        )
    if changed.metric not in measures:
        listed = ", ".join(measures)
        raise ValueError(
            f"rule {name!r} has the metric {changed.metric[:64]!r}; known metrics are: {listed}"
        )


def _measured(rule: Rule, measures: Mapping[str, Measure]) -> Rule:
    if rule.metric in MEASURES:
        return rule
    if rule.metric not in measures:
        listed = ", ".join(measures)
        expected = f"one of the metrics there are ({listed})"
        raise InvalidOption("metric", rule.metric, f"{expected}, as rule {rule.name!r} names it")
    return replace(rule, measured=measures[rule.metric])


def _own(name: str, found: RuleSettings) -> Rule:
    said = {"severity": Severity.WARNING, "action": "Look into it.", **found.changes}
    return Rule(name=name, **said)  # type: ignore[arg-type]  # checked when it was read


def _urls(given: str | tuple[str, ...]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else given


def _looks_like_a_url(url: str) -> bool:
    scheme, mark, rest = url.partition("://")
    return bool(scheme and mark and rest) or url.startswith("${")
