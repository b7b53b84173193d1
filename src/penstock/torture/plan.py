"""What will be done to whom, and when: all of it decided by a seed before the run begins."""

import random
from collections.abc import Iterable
from enum import StrEnum
from types import MappingProxyType

from msgspec import Struct

BARE = ("bare-1", "bare-2")
CHILDREN = ("child-1", "child-2")
SUPERVISOR = "supervisor"
SERVER = "server"

SUPERVISOR_SHARE = 0.05
FREEZES_PER_KILL = 0.2
TERMS_PER_KILL = 0.1


class Blow(StrEnum):
    """A way to harm a process: of a worker, or the server behind the store."""

    KILL = "kill"
    FREEZE = "freeze"
    TERM = "term"
    TERM_TWICE = "term_twice"
    CUT = "cut"
    CRASH = "crash"
    CUT_DISPATCH = "cut_dispatch"
    CRASH_DISPATCH = "crash_dispatch"


PER_KILL = MappingProxyType(
    {Blow.CUT: 0.4, Blow.CRASH: 0.05, Blow.CUT_DISPATCH: 0.2, Blow.CRASH_DISPATCH: 0.05}
)


class Strike(Struct, frozen=True):
    """One blow, at so many seconds into the run, against whoever then has that place."""

    at: float
    blow: Blow
    slot: str


def make_plan(
    kills: int, seconds: float, seed: int, against_server: Iterable[Blow] = ()
) -> list[Strike]:
    """Exactly `kills` kills; beside them a fifth as many freezes, a tenth as many terminations.

    Blows against a server come on top of a plan that is the same without them.
    """
    chance = random.Random(seed)
    blows = [Blow.KILL] * kills
    blows += [Blow.FREEZE] * _share(kills, FREEZES_PER_KILL)
    blows += [Blow.TERM, Blow.TERM_TWICE] * _share(kills, TERMS_PER_KILL / 2)
    chance.shuffle(blows)
    moments = _moments(len(blows), seconds, chance)
    strikes = [
        Strike(round(at, 3), blow, _slot(blow, chance))
        for at, blow in zip(moments, blows, strict=True)
    ]
    strikes += [
        Strike(round(chance.uniform(0, seconds), 3), blow, SERVER)
        for blow in against_server
        for _ in range(_share(kills, PER_KILL[blow]))
    ]
    return sorted(strikes, key=lambda strike: strike.at)


def _share(kills: int, per_kill: float) -> int:
    return max(1, round(kills * per_kill)) if kills else 0


def _moments(count: int, seconds: float, chance: random.Random) -> list[float]:
    """Gaps between a tenth and nineteen tenths of the mean, scaled to fill the time."""
    gaps = [chance.uniform(0.1, 1.9) for _ in range(count)]
    total = sum(gaps) or 1.0
    moments, now = [], 0.0
    for gap in gaps:
        now += gap
        moments.append(now / total * seconds)
    return moments


def _slot(blow: Blow, chance: random.Random) -> str:
    if blow in (Blow.TERM, Blow.TERM_TWICE):
        return chance.choice((*BARE, SUPERVISOR))
    if blow is Blow.KILL and chance.random() < SUPERVISOR_SHARE:
        return SUPERVISOR
    return chance.choice((*BARE, *CHILDREN))
