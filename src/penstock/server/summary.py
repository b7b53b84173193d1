"""How things stand at one moment, and one look at it for all who ask within a while."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct

from penstock.extension import Concern
from penstock.operate.controls import QueueState, queue_states
from penstock.operate.extensions import read_part
from penstock.operate.health import (
    Check,
    HealthStatus,
    checks_of,
    checks_of_extension,
    follower_checks,
)

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.store.contract import QueueDepth


class Figure(Struct, frozen=True):
    """A figure of an extension, and the page behind it."""

    title: str
    value: Any
    path: str


class Summary(Struct, frozen=True):
    """What a look at the store has shown."""

    depths: "list[QueueDepth]"
    queues: list[QueueState]
    """Every known queue, the empty ones too."""
    dead: int
    workers: int
    checks: Mapping[str, Check]
    concerns: list[Concern]
    counts: Mapping[str, tuple[int, bool]]
    """What stands beside pages of extensions, by their paths, and whether it is bad."""
    tiles: list[Figure]

    @property
    def busy(self) -> int:
        """Jobs that run now."""
        return sum(depth.in_progress for depth in self.depths)


async def summarise(app: "Penstock") -> Summary:
    """Look at an application's store."""
    store = app.store
    workers = await store.workers.list()
    depths = await store.metrics.depths()
    dead = await store.metrics.dead_count()
    limits = await store.controls.limits()
    pauses = await store.controls.pauses()
    return Summary(
        depths=depths,
        queues=queue_states(depths, pauses, limits, workers),
        dead=dead,
        workers=sum(worker.alive for worker in workers),
        checks={
            **checks_of(app.settings, workers, depths, dead, limits, pauses),
            **follower_checks(await store.changes.followers(), store.clock.now()),
        },
        concerns=await _concerns(app),
        counts=await _counts(app),
        tiles=await _tiles(app),
    )


async def _concerns(app: "Penstock") -> list[Concern]:
    found: list[Concern] = []
    for each in app.extensions:
        if each.concerns is not None:
            found += await read_part(each, "concerns", each.concerns, app) or ()
        for name, check in (await checks_of_extension(app, each)).items():
            if check.status is not HealthStatus.HEALTHY:
                page = next((page.path for page in each.pages if page.title), "")
                title = f"{each.title or each.name}: {name}"
                found.append(Concern(check.status.value, title, check.detail, page))
    return found


async def _counts(app: "Penstock") -> dict[str, tuple[int, bool]]:
    found: dict[str, tuple[int, bool]] = {}
    for each in app.extensions:
        for page in each.pages:
            if page.count is not None:
                number = await read_part(each, f"count of {page.path}", page.count, app) or 0
                found[page.path] = (number, page.bad and number > 0)
    return found


async def _tiles(app: "Penstock") -> list[Figure]:
    found: list[Figure] = []
    for each in app.extensions:
        for tile in each.tiles:
            value = await read_part(each, f"tile {tile.title}", tile.figure, app)
            found.append(Figure(tile.title, value, tile.path))
    return found


T = TypeVar("T")

# Of a large installation a look takes long: a twentieth of the time is spent looking, but nobody
# is shown what is older than this for it.
TIMES_COST = 20
MOST_SECONDS = 15.0


class Fresh(Generic[T]):
    """One look for all who ask within a while, and never two at once."""

    def __init__(self, look: Callable[[], Awaitable[T]], seconds: float) -> None:
        self.look = look
        self._seconds = seconds
        self._kept: tuple[float, T] | None = None
        self._looking = asyncio.Lock()

    async def get(self) -> T:
        """What was seen a moment ago, or is seen now."""
        async with self._looking:
            began = monotonic()
            if self._kept is None or began >= self._kept[0]:
                seen = await self.look()
                costly = TIMES_COST * (monotonic() - began)
                self._kept = began + max(self._seconds, min(costly, MOST_SECONDS)), seen
            return self._kept[1]
