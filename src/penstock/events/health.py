"""The health of the pipeline: its figures, what alerts measure of it, and its checks."""

import asyncio
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from msgspec import Struct
from msgspec.json import decode

from penstock.events import archive
from penstock.events.lag import Lag, lags
from penstock.events.parquet import NoArchive, arrow, make_folder
from penstock.events.pressure import Level, Pressure, level
from penstock.model.alert import Reading
from penstock.model.alert_rules import Rule
from penstock.model.errors import MissingExtra
from penstock.model.store_errors import StoreError
from penstock.model.wording import counted, listed, span
from penstock.operate.health import Check, HealthStatus

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.events.stream import StreamState

WINDOW_SECONDS = 60.0
STALLED_SECONDS = 30.0
FRESH_MS = 1_000


class Timing(Struct, frozen=True, kw_only=True):
    """How long a stage takes, in milliseconds; `of` is the consumer, or `ingest`."""

    of: str
    stage: str
    p50: float
    p95: float
    p99: float


class PipelineHealth(Struct, frozen=True, kw_only=True):
    """The figures of the pipeline, over the last minute where they have a span.

    `utilisation` is the share of its workers' time in which a consumer works, and
    `data_consistency` the share of sampled sessions that a replay derives alike. `unread` entries
    wait in the stream. `stalled_ms` is how long ingest has made no progress while some do. `sizes`
    are bytes: of the log and the archive, of what SQLite has written ahead (`wal`), of what waits
    in a `spool` here, and of the `stream` in the memory of its server.
    """

    pressure: Pressure
    consumers: list[Lag]
    timings: list[Timing]
    utilisation: dict[str, float]
    data_consistency: dict[str, float]
    put_off: dict[str, int]
    sizes: dict[str, int]
    unread: int
    stalled_ms: int
    write_errors: int


async def pipeline_health(app: "Penstock") -> PipelineHealth:
    """Everything that is known of how the pipeline does."""
    found = await lags(app)
    stream = await _stream_state(app)
    unread, stalled_ms = await _stalled(app, stream)
    return PipelineHealth(
        pressure=await level(app),
        consumers=found,
        timings=[*await _ingest_timings(app), *await _consumer_timings(app)],
        utilisation=await _utilisation(app, found),
        data_consistency={
            each.labels["consumer"]: each.last or 0.0
            for each in await app.series.read("events.consistency")
        },
        put_off={
            each.labels["consumer"]: round(each.total)
            for each in await app.series.read("events.put_off")
        },
        sizes=await _sizes(app, stream),
        unread=unread,
        stalled_ms=stalled_ms,
        write_errors=await _write_errors(app, WINDOW_SECONDS),
    )


async def _ingest_rows(app: "Penstock") -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = await app.read(lambda tx: tx.events.queries.rows("ingests"))
    return found


async def _ingest_timings(app: "Penstock") -> list[Timing]:
    return [
        Timing(of="ingest", stage=stage, p50=p50, p95=p95, p99=p99)
        for *_, stages in await _ingest_rows(app)
        for stage, (p50, p95, p99) in decode(stages).items()
    ]


async def _consumer_timings(app: "Penstock") -> list[Timing]:
    return [
        Timing(
            of=each.labels["consumer"],
            stage=each.labels["stage"],
            p50=(each.p50 or 0) / 1000,
            p95=(each.p95 or 0) / 1000,
            p99=(each.p99 or 0) / 1000,
        )
        for each in await app.series.read("events.stage_us", seconds=WINDOW_SECONDS)
    ]


async def _utilisation(app: "Penstock", found: list[Lag]) -> dict[str, float]:
    busy = {
        each.labels["consumer"]: each.total
        for each in await app.series.read("events.busy_ms", seconds=WINDOW_SECONDS)
    }
    return {
        each.consumer: min(1.0, busy.get(each.consumer, 0) / (1000 * WINDOW_SECONDS * each.workers))
        for each in found
        if each.workers
    }


async def _sizes(app: "Penstock", stream: "StreamState | None") -> dict[str, int]:
    def seen(tx: Any) -> list[Any]:
        names = ("log_bytes", "log_file", "archive_bytes")
        return [tx.events.queries.value(name) for name in names]

    log, file, archived = await app.read(seen)
    sizes = {"log": int(log), "archive": int(archived)}
    if file:
        sizes["wal"] = _size_of(Path(f"{file}-wal"))
    if app.events.intake is not None:
        sizes["spool"] = _size_of(app.events.intake.spool.path)
    return sizes if stream is None else {**sizes, "stream": stream.size}


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


async def _stream_state(app: "Penstock") -> "StreamState | None":
    return None if app.events.stream is None else await app.events.stream.state()


async def _stalled(app: "Penstock", state: "StreamState | None") -> tuple[int, int]:
    """How many entries wait in the stream, and for how long ingest has done nothing about it."""
    if state is None or not state.length or state.oldest_at is None:
        return 0, 0
    progress = max((int(row[3]) for row in await _ingest_rows(app)), default=0)
    return state.length, max(0, app.store.clock.now() - max(progress, state.oldest_at))


async def _write_errors(app: "Penstock", seconds: float) -> int:
    """Writes of the log that failed; an ingest whose writes fail counts as one."""
    recorded = sum(
        each.total for each in await app.series.read("events.write_errors", seconds=seconds)
    )
    failing = [row for row in await _ingest_rows(app) if row[6] is not None]
    return round(recorded) + len(failing)


async def depth(app: "Penstock", _: Rule) -> Reading:
    """Events behind, for the worst consumer that nobody has paused."""
    worst = max(_unpaused(await lags(app)), key=lambda each: each.depth, default=None)
    return Reading(0) if worst is None else Reading(worst.depth, f"most for {worst.consumer}")


async def lag(app: "Penstock", _: Rule) -> Reading:
    """Seconds behind, for the worst consumer that nobody has paused."""
    worst = max(_unpaused(await lags(app)), key=lambda each: each.lag_ms, default=None)
    return Reading(0) if worst is None else Reading(worst.lag_ms / 1000, f"for {worst.consumer}")


async def stalled(app: "Penstock", _: Rule) -> Reading:
    """Seconds without progress of ingest while entries wait."""
    try:
        unread, stalled_ms = await _stalled(app, await _stream_state(app))
    except StoreError:
        return Reading(None)
    return Reading(stalled_ms / 1000, f"unread: {unread:,}" if unread else "")


async def write_errors(app: "Penstock", rule: Rule) -> Reading:
    """Writes of the log that failed; a store that does not answer fails, too."""
    try:
        return Reading(await _write_errors(app, rule.window))
    except StoreError as error:
        return Reading(1, str(error))


async def pressure(app: "Penstock", _: Rule) -> Reading:
    """The level as a number: 0 is green, 3 red."""
    stands = await level(app)
    return Reading(stands.level.rank, f"{stands.level}, as {stands.reason}")


def _unpaused(found: list[Lag]) -> list[Lag]:
    return [each for each in found if not each.paused]


async def check_pressure(app: "Penstock") -> Check:
    """Whether consumers keep up."""
    stands = await level(app)
    told = f"The level is {stands.level}: {stands.reason}."
    if stands.sheds:
        told += f" {listed(sorted(stands.sheds))} put off events of low priority."
    status = {Level.ORANGE: HealthStatus.DEGRADED, Level.RED: HealthStatus.UNHEALTHY}
    figures = {"depth": stands.depth, "lag_ms": stands.lag_ms, "behind": stands.behind}
    return Check(status.get(stands.level, HealthStatus.HEALTHY), told, figures)


async def check_consumers(app: "Penstock") -> Check:
    """Whether somebody runs the consumers for which events wait."""
    found = _unpaused(await lags(app))
    idle = [each.consumer for each in found if each.depth and not each.workers and not each.held]
    if idle:
        told = f"Nobody runs {listed(idle)}, for which events wait; start `penstock consume`."
        return Check(HealthStatus.DEGRADED, told)
    return Check(HealthStatus.HEALTHY, f"{counted(len(found), 'consumer')} known here.")


async def check_ingest(app: "Penstock") -> Check:
    """Whether ingest makes progress with what waits for it, and the log takes it."""
    try:
        unread, stalled_ms = await _stalled(app, await _stream_state(app))
    except StoreError as error:
        return Check(HealthStatus.DEGRADED, f"The stream does not answer: {error}")
    if stalled_ms > 1000 * STALLED_SECONDS:
        told = f"{unread:,} wait in the stream; ingest has made no progress for {span(stalled_ms)}."
        return Check(HealthStatus.UNHEALTHY, told)
    return Check(HealthStatus.HEALTHY, f"{unread:,} wait in the stream.")


async def check_consistency(app: "Penstock") -> Check:
    """Whether what was derived is what a replay derives, on the last sample."""
    found = await app.series.read("events.consistency")
    wrong = [each.labels["consumer"] for each in found if each.last is not None and each.last < 1]
    if wrong:
        told = f"A replay derives something else for {listed(wrong)}; `penstock events rebuild`."
        return Check(HealthStatus.DEGRADED, told)
    return Check(HealthStatus.HEALTHY, "Sampled sessions are as a replay derives them.")


async def check_archive(app: "Penstock") -> Check:
    """Whether what is to be archived can be, and what was archived can be read.

    Nothing else deletes ended jobs while they are to be archived.
    """
    settings = app.extensions.settings("events")
    found = [file for state in ("leaving", "whole") for file in await archive.files(app, state)]
    if not (found or settings.archive or settings.archive_days or settings.jobs_archive_days):
        return Check(HealthStatus.HEALTHY, "off: nothing is archived")
    try:
        arrow()
        folder = archive.folder_of(app)
        make_folder(folder)
    except (OSError, MissingExtra, NoArchive) as error:
        where = settings.archive or "no folder"
        return Check(HealthStatus.UNHEALTHY, f"Nothing can be archived in {where}: {error}")
    if not os.access(folder, os.W_OK | os.X_OK):
        return Check(
            HealthStatus.UNHEALTHY, f"Nothing can be archived in {folder}: it is read-only"
        )
    missing = await asyncio.to_thread(_missing, folder, found)
    if missing:
        lack = f"{len(missing):,} of {counted(len(found), 'file')} cannot be read in {folder}"
        advice = "copy them there from where events.archive was before"
        return Check(HealthStatus.UNHEALTHY, f"{lack}, the first is {missing[0]}: {advice}")
    size = sum(file.size for file in found) / 1e6
    return Check(HealthStatus.HEALTHY, f"{counted(len(found), 'file')}, {size:,.1f} MB in {folder}")


def _missing(folder: Path, listed: Sequence[archive.Archived]) -> list[str]:
    """The names of files that are not there as the log lists them."""
    return [file.file for file in listed if not _is_there(folder, file)]


def _is_there(folder: Path, file: archive.Archived) -> bool:
    path = archive.path_of(folder, file.file)
    try:
        return os.access(path, os.R_OK) and path.stat().st_size == file.size
    except OSError:
        return False


Figures = dict[tuple[str, ...], float]

_fresh: "WeakKeyDictionary[Penstock, tuple[int, PipelineHealth]]" = WeakKeyDictionary()


async def look(app: "Penstock") -> PipelineHealth:
    """The same look for all families of one scrape, and for all who have the page open."""
    now = app.store.clock.monotonic()
    known = _fresh.get(app)
    if known is None or not 0 <= now - known[0] < FRESH_MS:
        known = _fresh[app] = (now, await pipeline_health(app))
    return known[1]


async def level_rank(app: "Penstock") -> float:
    """0 green, 1 yellow, 2 orange, 3 red."""
    return (await look(app)).pressure.level.rank


async def depths(app: "Penstock") -> Figures:
    """Events that wait, by consumer."""
    return {(each.consumer,): each.depth for each in (await look(app)).consumers}


async def lag_seconds(app: "Penstock") -> Figures:
    """Seconds behind, by consumer."""
    return {(each.consumer,): each.lag_ms / 1000 for each in (await look(app)).consumers}


async def workers(app: "Penstock") -> Figures:
    """Workers that run, by consumer."""
    return {(each.consumer,): each.workers for each in (await look(app)).consumers}


async def marked_sessions(app: "Penstock") -> Figures:
    """Sessions that are not as the log says, by consumer and mark."""
    return {
        (each.consumer, mark): getattr(each, mark)
        for each in (await look(app)).consumers
        for mark in ("behind", "unenriched", "incomplete", "waiting")
    }


async def put_off(app: "Penstock") -> Figures:
    """Events that were put off, by consumer."""
    return {(name,): count for name, count in (await look(app)).put_off.items()}


async def utilisation(app: "Penstock") -> Figures:
    """The share of time in which workers work, by consumer."""
    return {(name,): share for name, share in (await look(app)).utilisation.items()}


async def consistency(app: "Penstock") -> Figures:
    """The share of sampled sessions that a replay derives alike, by consumer."""
    return {(name,): share for name, share in (await look(app)).data_consistency.items()}


async def stage_seconds(app: "Penstock") -> Figures:
    """How long stages take, by whose they are, stage and quantile."""
    return {
        (each.of, each.stage, quantile): value / 1000
        for each in (await look(app)).timings
        for quantile, value in (("0.5", each.p50), ("0.95", each.p95), ("0.99", each.p99))
    }


async def unread_entries(app: "Penstock") -> float:
    """Entries of the stream that ingest has not written yet."""
    return (await look(app)).unread


async def sizes(app: "Penstock") -> Figures:
    """Bytes of log, archive, stream and what else there is."""
    return {(what,): size for what, size in (await look(app)).sizes.items()}
