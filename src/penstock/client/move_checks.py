"""What is looked at before a move begins, and after it."""

from collections.abc import Mapping

from penstock.model.ids import new_id
from penstock.model.moves import (
    MOVE,
    MOVED_TO,
    MOVING_FROM,
    MOVING_TO,
    SameStore,
    StoreMoved,
    StoreMoving,
    TargetInUse,
    WorkersAlive,
)
from penstock.model.urls import without_password
from penstock.store.contract import Part, Store, Tally

DECLARED = frozenset({Part.PAUSES, Part.LIMITS, Part.RATES, Part.BREAKERS, Part.METRICS})
"""What a store has as soon as an application or a worker was started on it once."""

_PROBE = "probe"


def is_same_move(source: str, here: Mapping[str, str], there: Mapping[str, str]) -> bool:
    """Whether the target is being filled from this very source."""
    if MOVING_FROM not in there:
        return False
    if MOVE in here:
        return here[MOVE] == there[MOVE]
    return there[MOVING_FROM] == without_password(source)


async def refuse_same(source: Store, target: Store) -> None:
    """Refuse a store as its own target, however the two URLs are spelled."""
    mine = new_id()
    await source.transfer.mark({_PROBE: mine})
    seen = (await target.transfer.marks()).get(_PROBE)
    await source.transfer.mark({_PROBE: None})
    if seen == mine:
        raise SameStore(source.url)


async def check_workers(*stores: Store, force: bool) -> None:
    """Refuse stores that workers use."""
    for store in stores:
        alive = [worker.name for worker in await store.workers.list() if worker.alive]
        if alive and not force:
            raise WorkersAlive(store.url, alive)


async def check_target(source: Store, target: Store, *, replace: bool) -> bool:
    """Refuse stores that another move is about, and a target in use; whether it is empty."""
    here, there = await source.transfer.marks(), await target.transfer.marks()
    if MOVED_TO in here:
        raise StoreMoved(source.url, here[MOVED_TO])
    if MOVING_FROM in here:
        raise StoreMoving(source.url, here[MOVING_FROM], away=False)
    if here.get(MOVING_TO, without_password(target.url)) != without_password(target.url):
        raise StoreMoving(source.url, here[MOVING_TO], away=True)
    for name, away in ((MOVING_FROM, False), (MOVING_TO, True)):
        if name in there and there.get(MOVE) != here.get(MOVE):
            raise StoreMoving(target.url, there[name], away=away)
    parts = (await target.transfer.tally()).parts
    held = [part for part in Part if parts[part]]
    replaceable = MOVED_TO in there or DECLARED.issuperset(held)
    if held and not (replace and replaceable):
        raise TargetInUse(target.url, _counted(parts), replaceable=replaceable)
    return not held and MOVED_TO not in there


def differences(expected: Tally, found: Tally) -> list[str]:
    """In words, what two tallies do not agree about."""
    figures = {part.value: (expected.parts[part], found.parts[part]) for part in Part}
    for status in sorted(expected.statuses.keys() | found.statuses.keys()):
        counts = expected.statuses.get(status, 0), found.statuses.get(status, 0)
        figures[f"{status} jobs"] = counts
    figures["sum of fences"] = expected.fences, found.fences
    figures["sum of attempts"] = expected.attempts, found.attempts
    return [f"{name}: {was:,} -> {now:,}" for name, (was, now) in figures.items() if was != now]


def _counted(parts: Mapping[Part, int]) -> list[str]:
    return [f"1 {_one(p)}" if parts[p] == 1 else f"{parts[p]:,} {p}" for p in Part if parts[p]]


def _one(part: Part) -> str:
    return "dependency" if part is Part.DEPENDENCIES else part.removesuffix("s")
