"""Figures over a window of time, read from the roll-ups, and whether they are as promised."""

import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import partial

from msgspec import Struct

from penstock.model.histogram import percentile, steps_of
from penstock.operate.stats import Point, Slo, SloState, Stats, open_letters, rate_of, total_jobs
from penstock.server.problems import Refusal
from penstock.server.requests import Traffic
from penstock.server.summary import Fresh
from penstock.server.uptime import Uptime
from penstock.store.contract import Store
from penstock.store.contract.metrics import (
    DAY_MS,
    HOUR_MS,
    LONGEST_MS,
    MINUTE_MS,
    SHORTEST_MS,
    resolution_for,
)

PATTERN = r"^[0-9]{1,6}(s|m|h|d)$"
UNITS_MS = {"s": 1_000, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}
MOST_STEPS = 120

Steps = list[tuple[int, dict[str, float]]]


def window_ms(text: str) -> int:
    """Milliseconds of `90s`, `15m`, `1h` or `7d`."""
    found = re.fullmatch(PATTERN, text)
    wanted = int(text[:-1]) * UNITS_MS[text[-1]] if found else 0
    if not SHORTEST_MS <= wanted <= LONGEST_MS:
        detail = f"The window is {text[:20]!r}, but it must be from 10s to 1000d."
        raise Refusal(422, detail, field="window")
    return wanted


def steps_over(found: Steps, span_ms: int, now: int) -> tuple[int, Steps]:
    """Steps put together to as many as a chart can show, and their width; empty ones included.

    The one that is not over yet is left out, as it would always look like a decline.
    """
    fine = resolution_for(span_ms)
    width = fine * max(1, -(-span_ms // (fine * MOST_STEPS)))
    last = now // width * width
    first = last - max(1, span_ms // width) * width
    steps: dict[int, dict[str, float]] = {
        at: defaultdict(float) for at in range(first, last, width)
    }
    for at, values in found:
        step = steps.get(at // width * width)
        if step is not None:
            for name, value in values.items():
                step[name] += value
    return width, list(steps.items())


class _Objective(Struct, frozen=True):
    key: str
    name: str
    unit: str
    above: bool
    bound: float
    of: str = ""

    def judged(self, value: float | None, *, excused: bool = False) -> Slo:
        """Against what was measured; what is missed with an excuse is not known."""
        state = SloState.UNKNOWN
        if value is not None:
            good = value > self.bound if self.above else value < self.bound
            missed = SloState.UNKNOWN if excused else SloState.MISSED
            state = SloState.MET if good else missed
        return Slo(
            key=self.key,
            name=self.name,
            target=f"{'>' if self.above else '<'} {_shown(self.bound, self.unit)}{self.of}",
            measured="–" if value is None else _shown(value, self.unit),
            unit=self.unit,
            above=self.above,
            bound=self.bound,
            value=value,
            state=state,
        )


SUBMISSION = _Objective("submission_latency", "Job submission latency", "ms", False, 100, " p95")
START = _Objective("start_latency", "Job execution start", "ms", False, 5_000, " p95")
COMPLETION = _Objective("completion_rate", "Job completion rate", "share", True, 0.95)
UPTIME = _Objective("worker_uptime", "Worker uptime", "share", True, 0.995)
DEAD = _Objective("dead_letter_rate", "Dead letter rate", "share", False, 0.01)
THROUGHPUT = _Objective("throughput", "System throughput", "jobs/min", True, 100)


def slos(stats: Stats, traffic: Traffic, uptime: Uptime) -> list[Slo]:
    """The objectives over the window of the stats.

    Submissions are those to this process in the last hour. Throughput is that since the first job
    of the window, and is missed only while a minute's work at the promised rate waits to be run:
    otherwise nobody asked for so much.
    """
    total = stats.total
    idle = sum(depth.queued for depth in stats.queues) < THROUGHPUT.bound
    rate = rate_of(stats.step_ms, stats.series)
    started, completed, dead = slos_of_jobs(stats)
    return [
        SUBMISSION.judged(traffic.submission_p95_ms(stats.window_ms)),
        started,
        completed,
        UPTIME.judged(uptime.share(stats.window_ms)),
        dead,
        THROUGHPUT.judged(total.per_minute if rate is None else rate.mean, excused=idle),
    ]


def slos_of_jobs(stats: Stats) -> list[Slo]:
    """Those objectives that are about what became of jobs, whosever they are."""
    total = stats.total
    return [
        START.judged(total.wait_p95_ms),
        COMPLETION.judged(total.success_rate),
        DEAD.judged(total.dead / total.ended if total.ended else None),
    ]


def _shown(value: float, unit: str) -> str:
    shown: Callable[[float], str] = _WORDS[unit]
    return shown(value)


def _share(value: float) -> str:
    shown = f"{value * 100:.2f}".rstrip("0").rstrip(".")
    return f"{shown} %"


def _milliseconds(value: float) -> str:
    return f"{value / 1_000:.3g} s" if value >= 1_000 else f"{value:.3g} ms"


_WORDS: dict[str, Callable[[float], str]] = {
    "ms": _milliseconds,
    "share": _share,
    "jobs/min": lambda value: f"{value:,.0f} jobs/min",
}


FRESH_SECONDS = 2.0
# Looking back for long makes the store fold its steps, which is a write.
FRESH_LONG_SECONDS = 20.0
KEPT = 100

COUNTED = ("completed", "failed", "cancelled", "dead", "snoozed", "crashed", "lease_expiries")


class RecentStats:
    """Stats by window, each read again only when it has aged."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._kept: dict[tuple[int, str | None], Fresh[Stats]] = {}

    async def over(self, span_ms: int, tenant_id: str | None = None) -> Stats:
        """What happened in the last so many milliseconds, to a tenant's jobs or to all."""
        asked = span_ms, tenant_id
        seconds = FRESH_SECONDS if span_ms <= HOUR_MS else FRESH_LONG_SECONDS
        kept = self._kept.pop(asked, None) or Fresh(partial(self._look, *asked), seconds)
        self._kept[asked] = kept
        if len(self._kept) > KEPT:
            del self._kept[next(iter(self._kept))]
        return await kept.get()

    async def _look(self, span_ms: int, tenant_id: str | None) -> Stats:
        metrics = self._store.metrics
        now = self._store.clock.now()
        total, *types = await metrics.window(span_ms, tenant_id)
        found = await metrics.series(
            resolution_for(span_ms), span_ms, timings=True, tenant_id=tenant_id
        )
        step_ms, steps = steps_over(found, span_ms, now)
        queues = await metrics.depths(tenant_id)
        return Stats(
            at=now,
            window_ms=span_ms,
            step_ms=step_ms,
            total_jobs=total_jobs(total, queues),
            total=total,
            types=types,
            queues=queues,
            dead_letters=await open_letters(self._store, tenant_id),
            series=points(steps),
        )


def points(steps: Steps) -> list[Point]:
    """Steps as counts and percentiles."""
    return [_point(at, values) for at, values in steps]


def _point(at: int, values: Mapping[str, float]) -> Point:
    durations, waits = steps_of(values, "duration"), steps_of(values, "wait")
    return Point(
        at=at,
        **{name: int(values.get(name, 0)) for name in COUNTED},
        duration_p50_ms=percentile(durations, 0.50),
        duration_p95_ms=percentile(durations, 0.95),
        duration_p99_ms=percentile(durations, 0.99),
        wait_p50_ms=percentile(waits, 0.50),
        wait_p95_ms=percentile(waits, 0.95),
        wait_p99_ms=percentile(waits, 0.99),
    )
