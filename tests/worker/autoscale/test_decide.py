from typing import Any

import pytest

from penstock.worker.autoscale import Decision, Load, Memory, Policy, decide

NOW = 1_000_000
LONG_AGO = 0
POLICY = Policy(least=1, most=4)


def load(**figures: Any) -> Load:
    given: dict[str, Any] = {"in_progress": 0, "wait_seconds": 0.0, "cpu_percent": 0.0}
    return Load(**{"queued": 50, "workers": 0} | given | figures)


CALM = Memory(changed_at=LONG_AGO, calm_since=NOW - 120_000)

TABLE: list[tuple[str, Load, int, Memory, int, str]] = [
    ("fewer than the least", load(), 0, Memory(), 1, "at least 1"),
    ("more than the most", load(), 9, Memory(), 4, "at most 4"),
    ("too deep", load(queued=101), 1, Memory(), 2, "101 queued, more than 100"),
    ("deep enough", load(queued=100), 1, Memory(), 1, ""),
    ("too long a wait", load(wait_seconds=301), 1, Memory(), 2, "waited 5 min 1 s, longer"),
    ("a wait that is over", load(queued=0, wait_seconds=301), 1, Memory(), 1, ""),
    ("too busy", load(cpu_percent=81), 2, Memory(), 3, "81 % of a core, more than 80 %"),
    ("busy enough", load(cpu_percent=80), 2, Memory(), 2, ""),
    ("at the most already", load(queued=9_999), 4, Memory(), 4, ""),
    ("just changed", load(queued=101), 1, Memory(changed_at=NOW - 59_999), 1, ""),
    ("cooled down", load(queued=101), 1, Memory(changed_at=NOW - 60_000), 2, "101 queued"),
    ("between the two", load(queued=10), 3, CALM, 3, ""),
    ("calm for long", load(queued=9), 3, CALM, 2, "9 queued, fewer than 10"),
    ("calm since now", load(queued=9), 3, Memory(), 3, ""),
    ("calm for a while", load(queued=9), 3, Memory(calm_since=NOW - 119_999), 3, ""),
    (
        "calm but just changed",
        load(queued=9),
        3,
        Memory(changed_at=NOW - 1, calm_since=NOW - 120_000),
        3,
        "",
    ),
    ("calm at the least", load(queued=0), 1, CALM, 1, ""),
    ("calm, but the rest would be too busy", load(queued=0, cpu_percent=60), 2, CALM, 2, ""),
    ("calm, and the rest can take it", load(queued=0, cpu_percent=39), 2, CALM, 1, "0 queued"),
]


@pytest.mark.parametrize(
    ("found", "workers", "memory", "wanted", "reason"),
    [pytest.param(*row[1:], id=row[0]) for row in TABLE],
)
def test_a_load_decides_how_many_workers_there_are(
    found: Load, workers: int, memory: Memory, wanted: int, reason: str
) -> None:
    decision = decide(found, workers, memory, POLICY, NOW)
    assert decision.workers == wanted
    assert reason in decision.reason
    assert bool(reason) == bool(decision.reason)


def test_nobody_works_where_there_may_be_none_and_nothing_waits() -> None:
    policy = Policy(least=0, most=2)
    assert decide(load(queued=0), 0, Memory(), policy, NOW).reason == ""
    first = decide(load(queued=1), 0, Memory(), policy, NOW)
    assert (first.workers, first.reason) == (1, "1 queued and nobody works")
    assert decide(load(queued=1), 1, CALM, policy, NOW).workers == 1
    assert decide(load(queued=0, in_progress=1), 1, CALM, policy, NOW).workers == 1
    last = decide(load(queued=0), 1, CALM, policy, NOW)
    assert (last.workers, last.reason) == (0, "nothing is queued and nothing runs")


def test_a_busy_moment_ends_the_calm() -> None:
    after = decide(load(queued=50), 3, CALM, POLICY, NOW)
    assert after.memory.calm_since is None


def test_a_load_that_swings_does_not_make_workers_come_and_go() -> None:
    decision = Decision(workers=1, reason="", memory=Memory())
    seen = []
    for second in range(0, 600, 5):
        swinging = load(queued=150 if second // 5 % 2 else 0)
        now = NOW + second * 1000
        decision = decide(swinging, decision.workers, decision.memory, POLICY, now)
        seen.append(decision.workers)
    assert seen == sorted(seen)
