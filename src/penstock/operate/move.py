"""Moving a whole installation into another store: checked, resumable, verified."""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager

from msgspec import Struct
from msgspec.json import decode, encode

from penstock.model.clock import Clock
from penstock.model.errors import InvalidOption, PenstockError
from penstock.model.ids import new_id
from penstock.model.redact import without_password
from penstock.model.transfer import (
    CAME_BY,
    DONE,
    EMPTYING,
    MOVE,
    MOVED_TO,
    MOVING_FROM,
    MOVING_TO,
    TALLY,
    MoveIncomplete,
    MoveOvertaken,
    NoSuchMove,
    NothingToMove,
    NotMovedAway,
    SameStore,
    SourceChanged,
    StillThere,
    StoreMoved,
    StoreMoving,
    TablesStay,
    TargetInUse,
    WorkersAlive,
    refuse_half,
    refuse_moved,
)
from penstock.operate.journal import Journal
from penstock.operate.tables import (
    Copying,
    Places,
    forget_copied,
    is_same,
    opened_beside,
    opened_store,
    tables_of,
    without_outbox,
)
from penstock.store.contract import Bookmark, Page, Part, Store, Tally
from penstock.store.open import lasting_name, open_store

DECLARED = frozenset(
    {Part.PAUSES, Part.LIMITS, Part.RATES, Part.BREAKERS, Part.METRICS, Part.FOLLOWERS}
)
"""What a store has as soon as an application or a worker was started on it once."""

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
    if await is_same(source, target):
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


_WORDS = {
    Part.LOGS: "log lines",
    Part.KEYS: "unique keys",
    Part.LINES: "order keys",
    Part.AUDIT: "audit lines",
}
"""What a part is called in a sentence, where its name alone would not say."""


def counted_parts(tally: Tally) -> list[str]:
    """Say in words how much of each part there is."""
    found = [(_WORDS.get(part, str(part)), tally.parts[part]) for part in Part]
    return [f"{count:,} {_one(noun) if count == 1 else noun}" for noun, count in found if count]


def _one(noun: str) -> str:
    return "dependency" if noun == Part.DEPENDENCIES else noun.removesuffix("s")


PAGE = 1_000
LOOK_SECONDS = 15
FORGOTTEN = {MOVE: None, MOVING_TO: None, MOVED_TO: None}

Show = Callable[[str, int, int], None]
"""Hears of a part how many records have been moved, and of how many."""


class Moved(Struct, frozen=True):
    """What was moved, whether an interrupted move was resumed, and how many records were sent.

    `rows` are those of extensions.
    """

    tally: Tally
    resumed: bool
    sent: int
    rows: int = 0


async def move(
    source: str,
    target: str,
    *,
    keep: bool = False,
    force: bool = False,
    replace: bool = False,
    allow_volatile: bool = False,
    tables: Places = Places(),  # noqa: B008 - it cannot be changed
    clock: Clock | None = None,
    show: Show | None = None,
) -> Moved:
    """Move all that one store holds into another, which is empty; run again, it goes on.

    Afterwards the old store refuses to be opened, unless `keep` says that it stays as it is.
    `force` passes over workers that seem alive. `replace` empties a target whose jobs were moved
    to where they now come from, or that holds no jobs. A Redis that keeps nothing on disk is a
    target only with `allow_volatile`. Tables of extensions go along; `tables` says from where and
    to where, if a store has none. A move that is refused makes nothing.
    """
    async with _existing(source, clock) as old, opened_beside(tables.source, clock) as theirs:
        having = theirs or old
        found = await tables_of(having.url, having.tables, tables.known)
        wanted = await without_outbox(having.url, having.tables, found)
        new = open_store(target, clock, allow_volatile=allow_volatile)
        try:
            if not await new.exists():
                await check_source(old, target)
                await check_workers(old, force=force)
            if wanted and tables.target is None and new.tables is None:
                raise TablesStay(new.url, [each.extension for each in wanted])
            await new.open(moving=True)
            async with opened_beside(tables.target, clock) as ours:
                mover = Mover(old, new, keep=keep, force=force, replace=replace, show=show)
                taking = ours or new
                if wanted and not await is_same(having, taking):
                    mover.tables = Copying(having, taking, wanted, beside=ours is not None)
                return await mover.run()
        finally:
            await new.close()


async def abandon(
    source: str,
    target: str,
    *,
    tables: Places = Places(),  # noqa: B008 - it cannot be changed
    clock: Clock | None = None,
) -> None:
    """Give an interrupted move up: the source may be used again, and the target is emptied.

    `tables` says where the move copied rows of extensions to, as it did for the move.
    """
    async with _existing(source, clock) as old:
        here = await old.transfer.marks()
        under_way = here.get(MOVING_TO) == lasting_name(target)
        if under_way:
            # Even when the target is gone for good.
            await old.transfer.mark(FORGOTTEN)
        new = open_store(target, clock)
        try:
            if await new.exists():
                await new.open(moving=True)
                there = await new.transfer.marks()
                emptying = MOVE in here and there.get(EMPTYING) == here[MOVE]
                if emptying or (MOVED_TO not in here and is_same_move(source, here, there)):
                    try:
                        await forget_copied(new, there, tables, clock)
                    except PenstockError:
                        # Still under way: once told what is lacking, it is given up as a whole.
                        await old.transfer.mark({name: here.get(name) for name in FORGOTTEN})
                        raise
                    await new.transfer.clear()
                    return
            if not under_way:
                raise NoSuchMove(source, target)
        finally:
            await new.close()


class Reopening(Struct, frozen=True):
    """A store that is to be opened again: what it holds, where it went, and what is there now."""

    tally: Tally
    moved_to: str
    finding: str


async def reopen(
    source: str,
    *,
    moved_to: str | None = None,
    force: bool = False,
    confirm: Callable[[Reopening], None] | None = None,
    actor: str = "program",
    clock: Clock | None = None,
) -> Reopening:
    """Let a store that was moved away be opened again, as it was when it was moved.

    Jobs that were done since in the store it was moved to would be done again. Refused while that
    one is there and holds the jobs, unless by `force`. `moved_to` is its URL with its password;
    `confirm` hears what was found, and raises to leave everything as it is. The store's audit log
    says that it was opened again, and by which `actor`.
    """
    async with _existing(source, clock) as store:
        marks = await store.transfer.marks()
        refuse_half(source, marks)
        if MOVED_TO not in marks:
            refuse_moved(source, marks)
            raise NotMovedAway(source)
        if moved_to is not None and lasting_name(moved_to) != marks[MOVED_TO]:
            raise InvalidOption("moved_to", without_password(moved_to), marks[MOVED_TO])
        there = await _look(moved_to or marks[MOVED_TO], marks[MOVE], clock)
        if isinstance(there, Tally):
            if not force:
                raise StillThere(source, marks[MOVED_TO], counted_parts(there))
            there = "still holds them"
        found = Reopening(await store.transfer.tally(), marks[MOVED_TO], there)
        if confirm is not None:
            confirm(found)
        details = {"moved_to": found.moved_to, "finding": found.finding, "force": force}
        async with Journal(store).doing(actor, "store.reopen", "store", details=details):
            await store.transfer.mark(FORGOTTEN)
        return found


async def _look(url: str, move_id: str, clock: Clock | None) -> Tally | str:
    """Return what a store holds if a move led there, or say why that cannot be said."""
    if ":***@" in url:
        return "was not looked at, because its password is not known here"
    try:
        store = open_store(url, clock)
        try:
            async with asyncio.timeout(LOOK_SECONDS):
                if not await store.exists():
                    return "is not there any more"
                await store.open(moving=True)
                came_by = (await store.transfer.marks()).get(CAME_BY, "").split()
                if move_id not in came_by:
                    return "was made anew since and does not hold them"
                return await store.transfer.tally()
        finally:
            await store.close()
    except TimeoutError:
        return f"did not answer within {LOOK_SECONDS} s"
    except PenstockError as error:
        return f"cannot be looked at ({str(error).rstrip('.')})"


class Mover:
    """One move, between stores that are open."""

    tables: Copying | None = None

    def __init__(
        self,
        source: Store,
        target: Store,
        *,
        keep: bool = False,
        force: bool = False,
        replace: bool = False,
        show: Show | None = None,
        page: int = PAGE,
    ) -> None:
        self._source = source
        self._target = target
        self._keep = keep
        self._force = force
        self._replace = replace
        self._show = show or silently
        self._page = page
        self._sent = 0

    async def run(self) -> Moved:
        """Begin, or go on; each step may be the last before an interruption."""
        resumed = await self._begin()
        marks = await self._target.transfer.marks()
        tally = decode(marks[TALLY], type=Tally)
        await self._refuse_changed(tally)
        for part in Part:
            await self._move_part(part, marks[MOVE], marks.get(part), tally.parts[part])
        differing = differences(tally, await self._target.transfer.tally())
        await self._refuse_changed(tally)
        if differing:
            raise MoveIncomplete(self._target.url, differing)
        rows = 0
        if self.tables is not None:
            rows = await self.tables.copy(self._show)
        await self._finish()
        return Moved(tally, resumed, self._sent, rows)

    async def _begin(self) -> bool:
        """Mark both stores; whether they were already."""
        await refuse_same(self._source, self._target)
        here, there = await self._source.transfer.marks(), await self._target.transfer.marks()
        await check_workers(self._source, self._target, force=self._force)
        to = lasting_name(self._target.url)
        if is_same_move(self._source.url, here, there):
            if MOVED_TO not in here:
                await self._source.transfer.mark({MOVE: there[MOVE], MOVING_TO: to})
            return True
        empty = await check_target(self._source, self._target, replace=self._replace)
        if self.tables is not None:
            left = MOVED_TO in there and there[MOVE] in here.get(CAME_BY, "").split()
            await self.tables.refuse_taken(left=left, replace=self._replace or EMPTYING in there)
        move_id = here.get(MOVE) or new_id()
        # The source first: from now on nobody opens it, and then it can be counted.
        await self._source.transfer.mark({MOVE: move_id, MOVING_TO: to})
        begun = {MOVING_FROM: lasting_name(self._source.url)}
        if self.tables is not None:
            begun |= self.tables.marks
        if not empty:
            # What is deleted here is in the source, which stays as it is until all is verified.
            await self._target.transfer.mark({EMPTYING: move_id, **begun})
            await self._empty()
        # Steps that were folded are whole; those whose fine ones are gone cannot be any more.
        await self._source.metrics.roll_up()
        await self._target.transfer.mark(
            {
                MOVE: move_id,
                **begun,
                CAME_BY: f"{here.get(CAME_BY, '')} {move_id}".strip(),
                TALLY: encode(await self._source.transfer.tally()).decode(),
            }
        )
        return False

    async def _move_part(self, part: Part, move_id: str, before: str | None, total: int) -> None:
        done = total if before == DONE else 0
        self._show(part, done, total)
        if before == DONE:
            return
        page = await self._source.transfer.page(part, before, self._page)
        while True:
            following, adopted = await asyncio.gather(
                self._read_on(part, page),
                self._target.transfer.adopt(
                    part, page.rows, Bookmark(move_id, before, page.after or DONE)
                ),
            )
            if not adopted:
                raise MoveOvertaken(self._target.url)
            self._sent += len(page.rows)
            done += len(page.rows)
            self._show(part, total if following is None else min(done, total), total)
            if following is None:
                return
            before, page = page.after, following

    async def _read_on(self, part: Part, page: Page) -> Page | None:
        """The next page, while this one is written."""
        if page.after is None:
            return None
        return await self._source.transfer.page(part, page.after, self._page)

    async def _refuse_changed(self, tally: Tally) -> None:
        """Start over another time, rather than move half of a change."""
        changes = differences(tally, await self._source.transfer.tally())
        if changes:
            await self._source.transfer.mark(FORGOTTEN)
            await self._empty()
            raise SourceChanged(self._source.url, changes)

    async def _empty(self) -> None:
        """Delete what the target holds, its marks last."""
        if self.tables is not None:
            await self.tables.clear()
        await self._target.transfer.clear()

    async def _finish(self) -> None:
        """The source first: whatever happens in between, a next run ends what is left to do."""
        if self._keep:
            await self._source.transfer.mark(FORGOTTEN)
        else:
            moved_to = lasting_name(self._target.url)
            await self._source.transfer.mark({MOVING_TO: None, MOVED_TO: moved_to})
        marks = await self._target.transfer.marks()
        await self._target.transfer.mark(dict.fromkeys(marks.keys() - {CAME_BY}))


@asynccontextmanager
async def _existing(url: str, clock: Clock | None) -> AsyncGenerator[Store, None]:
    """Open a store that must not be made by looking for it."""
    store = open_store(url, clock)
    try:
        if not await store.exists():
            raise NothingToMove(url)
    finally:
        await store.close()
    async with opened_store(url, clock) as opened:
        yield opened


def silently(part: str, done: int, total: int) -> None:
    """Nobody watches."""
