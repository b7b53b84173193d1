"""What is looked at before a move begins, and after it."""

from collections.abc import Mapping

from penstock.model.ids import new_id
from penstock.model.redact import without_password
from penstock.model.transfer import (
    CAME_BY,
    EMPTYING,
    MOVE,
    MOVED_TO,
    MOVING_FROM,
    MOVING_TO,
    SameStore,
    StoreMoved,
    StoreMoving,
    TargetInUse,
    WorkersAlive,
    refuse_half,
)
from penstock.store.contract import Part, Store, Tally
from penstock.store.open import lasting_name

DECLARED = frozenset({Part.PAUSES, Part.LIMITS, Part.RATES, Part.BREAKERS, Part.METRICS})
"""What a store has as soon as an application or a worker was started on it once."""

_PROBE = "probe"
_REOPEN = "open it again with `penstock reopen`, or "


def is_same_move(source: str, here: Mapping[str, str], there: Mapping[str, str]) -> bool:
    """Tell whether the target is being filled from this very source."""
    if MOVING_FROM not in there or EMPTYING in there:
        return False
    if MOVE in here:
        return here[MOVE] == there[MOVE]
    return there[MOVING_FROM] == lasting_name(source)


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


async def check_source(source: Store, target: str) -> Tally:
    """Refuse a source that cannot be moved to a URL, whatever is there; return what it holds."""
    here = await source.transfer.marks()
    if MOVED_TO in here:
        raise StoreMoved(source.url, here[MOVED_TO])
    refuse_half(source.url, here)
    if here.get(MOVING_TO, lasting_name(target)) != lasting_name(target):
        raise StoreMoving(source.url, here[MOVING_TO], away=True)
    return await source.transfer.tally()


async def check_target(source: Store, target: Store, *, replace: bool) -> bool:
    """Refuse stores that another move is about, and a target in use; tell whether it is empty."""
    given = held(await check_source(source, target.url))
    here, there = await source.transfer.marks(), await target.transfer.marks()
    emptying = EMPTYING in there and there[EMPTYING] == here.get(MOVE)
    for name, away in ((MOVING_FROM, False), (MOVING_TO, True)):
        if name in there and not emptying and there.get(MOVE) != here.get(MOVE):
            raise StoreMoving(target.url, there[name], away=away)
    tally = await target.transfer.tally()
    taken = held(tally)
    if taken and not emptying:
        _refuse_loss(source, target, given, tally, here, there)
        if not replace:
            advice = "empty it first with --replace, or "
            raise TargetInUse(target.url, counted_parts(tally), advice)
    return not taken and not there.keys() & {MOVED_TO, EMPTYING}


def _refuse_loss(
    source: Store,
    target: Store,
    given: set[Part],
    tally: Tally,
    here: Mapping[str, str],
    there: Mapping[str, str],
) -> None:
    """Refuse to replace anything by a store that does not hold it, or its successor."""
    taken, holds = held(tally), counted_parts(tally)
    if not given or (given <= DECLARED and not taken <= DECLARED):
        nothing = f"{without_password(source.url)} holds nothing that could take its place; "
        raise TargetInUse(target.url, holds, nothing + (_REOPEN if MOVED_TO in there else ""))
    if taken <= DECLARED:
        return
    if MOVED_TO not in there:
        raise TargetInUse(target.url, holds)
    if there[MOVE] not in here.get(CAME_BY, "").split():
        lacking = (
            f"it was moved to {there[MOVED_TO]}, and {without_password(source.url)} does not hold "
            f"what was moved; {_REOPEN}"
        )
        raise TargetInUse(target.url, holds, lacking)


def held(tally: Tally) -> set[Part]:
    """Return the parts of which there is anything."""
    return {part for part in Part if tally.parts[part]}


def differences(expected: Tally, found: Tally) -> list[str]:
    """In words, what two tallies do not agree about."""
    figures = {part.value: (expected.parts[part], found.parts[part]) for part in Part}
    for status in sorted(expected.statuses.keys() | found.statuses.keys()):
        counts = expected.statuses.get(status, 0), found.statuses.get(status, 0)
        figures[f"{status} jobs"] = counts
    figures["sum of fences"] = expected.fences, found.fences
    figures["sum of attempts"] = expected.attempts, found.attempts
    return [f"{name}: {was:,} -> {now:,}" for name, (was, now) in figures.items() if was != now]


def counted_parts(tally: Tally) -> list[str]:
    """Say in words how much of each part there is."""
    parts = tally.parts
    return [f"1 {_one(p)}" if parts[p] == 1 else f"{parts[p]:,} {p}" for p in Part if parts[p]]


def _one(part: Part) -> str:
    return "dependency" if part is Part.DEPENDENCIES else part.removesuffix("s")
