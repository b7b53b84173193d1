"""Service level objectives: what is promised, what was measured, and whether the two agree."""

from collections.abc import Callable

from msgspec import Struct

from penstock.client.stats import Slo, SloState, Stats
from penstock.server.traffic import Traffic
from penstock.server.uptime import Uptime


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

    Submissions are those to this process in the last hour. A throughput below its target is missed
    only while jobs wait to be run: otherwise nobody asked for more.
    """
    total = stats.total
    waiting = sum(depth.queued for depth in stats.queues)
    started, completed, dead = slos_of_jobs(stats)
    return [
        SUBMISSION.judged(traffic.submission_p95_ms(stats.window_ms)),
        started,
        completed,
        UPTIME.judged(uptime.share(stats.window_ms)),
        dead,
        THROUGHPUT.judged(total.per_minute, excused=not waiting),
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
