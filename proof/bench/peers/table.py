"""From the readings of a comparison to its tables: each system's figures, and what they say."""

from collections.abc import Iterator, Mapping, Sequence

import msgspec

from proof.bench.figures import Figure
from proof.bench.peers.system import BOTH, NODE, POSTGRES, REDIS, SQLITE, System
from proof.bench.readings import Readings
from proof.bench.stages.comparison import SINGLES, limit_of

STORES = (SQLITE, POSTGRES, BOTH, REDIS)
LIMIT_GOAL = 0.5
PEER_GOAL = 2.0
PICKUP_GOAL = 1.2
TWO_GOAL = 1.6


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One system's figures; what was not measured is missing, and `failure` says why."""

    store: str
    name: str
    version: str = ""
    setting: str = ""
    bulk: float | None = None
    single: float | None = None
    single_plainly: float | None = None
    drain: float | None = None
    drain_by_two: float | None = None
    pickup_p50: float | None = None
    pickup_p95: float | None = None
    failure: str | None = None


def limit_row(readings: Readings, store: str) -> Row:
    """The raw limit of a store."""
    key = limit_of(store)
    return Row(
        store=store,
        name="raw limit",
        setting="batches of 100",
        bulk=_median(readings, f"{key} bulk/s"),
        drain=_median(readings, f"{key} drain/s"),
    )


def system_row(
    readings: Readings, system: System, *, version: str, setting: int, failure: str | None
) -> Row:
    """A system that took part, or was meant to."""
    key = system.key
    return Row(
        store=system.store,
        name=system.label,
        version=version,
        setting=f"{system.knob} {setting}" if setting else f"no {system.knob}",
        bulk=_median(readings, f"{key} bulk/s"),
        single=_median(readings, f"{key} {SINGLES[0]}"),
        single_plainly=_median(readings, f"{key} {SINGLES[1]}"),
        drain=_median(readings, f"{key} drain/s"),
        drain_by_two=_median(readings, f"{key} drain by two/s"),
        pickup_p50=_percentile(readings, f"{key} pickup ms", 50),
        pickup_p95=_percentile(readings, f"{key} pickup ms", 95),
        failure=failure,
    )


def verdicts(
    readings: Readings, ours: Mapping[str, System], peers: Sequence[System]
) -> Iterator[Figure]:
    """What the targets ask of penstock on every store where it was measured."""
    for store in STORES:
        if store in ours and readings.has(f"{ours[store].key} drain by two/s"):
            yield from _store_verdicts(readings, ours[store], _rivals(store, peers))


def _store_verdicts(readings: Readings, ours: System, rivals: Sequence[System]) -> Iterator[Figure]:
    limit = limit_of(ours.store)
    for what, title in (("bulk/s", "bulk enqueue"), ("drain/s", "drain by one process")):
        mine = f"{ours.key} {what}"
        yield _rate(readings, ours, title, mine, f"{limit} {what}", "raw limit", LIMIT_GOAL)
        goal = PEER_GOAL if what == "drain/s" else 1.0
        for on_node in (False, True):
            group = [rival for rival in rivals if (rival.name == NODE) is on_node]
            best = _best(readings, group, what)
            if best:
                yield _rate(readings, ours, title, mine, f"{best.key} {what}", best.label, goal)
    yield from _singles(readings, ours, rivals)
    two, one = f"{ours.key} drain by two/s", f"{ours.key} drain/s"
    yield _rate(readings, ours, "drain by two processes", two, one, "one process", TWO_GOAL)
    yield from _pickup(readings, ours, rivals)


def _singles(readings: Readings, ours: System, rivals: Sequence[System]) -> Iterator[Figure]:
    """Both kinds of caller beside the best peer, whichever kind that serves better."""
    measured = [
        (readings.median(f"{rival.key} {kind}"), f"{rival.key} {kind}", rival.label)
        for rival in rivals
        for kind in SINGLES
        if rival.waits_for_disk and readings.has(f"{rival.key} {kind}")
    ]
    if not measured:
        return
    _, best, name = max(measured)
    for kind, title in zip(SINGLES, ("single enqueue", "single enqueue by app.sync"), strict=True):
        if readings.has(f"{ours.key} {kind}"):
            yield _rate(readings, ours, title, f"{ours.key} {kind}", best, name, 1.0)


def _rate(
    readings: Readings,
    ours: System,
    title: str,
    mine: str,
    other: str,
    other_name: str,
    goal: float,
) -> Figure:
    ratio = readings.ratio(mine, other)
    return Figure(
        topic=ours.store,
        name=title,
        measured=readings.median(mine),
        unit="jobs/s",
        reference=readings.median(other),
        reference_name=other_name,
        ratio=ratio,
        target=f"ratio ≥ {goal:g}",
        met=ratio >= goal,
    )


def _pickup(readings: Readings, ours: System, rivals: Sequence[System]) -> Iterator[Figure]:
    measured = [rival for rival in rivals if readings.has(f"{rival.key} pickup ms")]
    if not measured or not readings.has(f"{ours.key} pickup ms"):
        return
    first = min(measured, key=lambda rival: readings.percentile(f"{rival.key} pickup ms", 95))
    mine = readings.percentile(f"{ours.key} pickup ms", 95)
    best = readings.percentile(f"{first.key} pickup ms", 95)
    yield Figure(
        topic=ours.store,
        name="pickup, p95",
        measured=mine,
        unit="ms",
        reference=best,
        reference_name=first.label,
        ratio=mine / best,
        target=f"ratio ≤ {PICKUP_GOAL:g}",
        met=mine / best <= PICKUP_GOAL,
    )


def _rivals(store: str, peers: Sequence[System]) -> list[System]:
    where = POSTGRES if store == BOTH else store
    return [peer for peer in peers if peer.store == where]


def _best(readings: Readings, group: Sequence[System], what: str) -> System | None:
    measured = [system for system in group if readings.has(f"{system.key} {what}")]
    return max(measured, key=lambda system: readings.median(f"{system.key} {what}"), default=None)


def _median(readings: Readings, name: str) -> float | None:
    return readings.median(name) if readings.has(name) else None


def _percentile(readings: Readings, name: str, percent: int) -> float | None:
    return readings.percentile(name, percent) if readings.has(name) else None
