"""Ending leases. Every write is fenced; what was not written is reported as stale."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from msgspec.json import encode

from penstock.model.controls import COUNTED
from penstock.model.failure import Failure
from penstock.model.histogram import step_of
from penstock.model.outcome import (
    Buried,
    Cancelled,
    Completed,
    Crashed,
    Failed,
    HandedBack,
    Settlement,
    Snoozed,
)
from penstock.store.contract import Report
from penstock.store.contract.metrics import LONGEST, attempts_name, of_tenant
from penstock.store.redis.keys import label, spelled, told
from penstock.store.redis.release import decided
from penstock.store.redis.scripts import Scripts

_KINDS: dict[type[Settlement], str] = {
    Failed: "failed",
    Snoozed: "snoozed",
    Cancelled: "cancelled",
    Buried: "buried",
    Crashed: "crashed",
    HandedBack: "handed_back",
}


async def settle(scripts: Scripts, owner: str, settlements: Sequence[Settlement]) -> list[str]:
    """Apply each settlement whose fence still holds; the ids of the others.

    The script writes nothing while one is stale: those are left out, and the rest is sent again.
    """
    left = {(s.id, s.fence): s for s in reversed(settlements)}
    lost: list[str] = []
    while left:
        answer = await decided(scripts, "settle", *_arguments(owner, list(left.values())[::-1]))
        if answer == 1:
            break
        for name, fence, settled_before in answer[1]:
            del left[name.decode(), int(fence)]
            if not settled_before:
                lost.append(name.decode())
    return lost


async def report(scripts: Scripts, owner: str, reports: Sequence[Report]) -> list[str]:
    """Write progress, checkpoints and logs of running executions."""
    rows = [
        {
            "id": report.id,
            "fence": report.fence,
            "percent": None if report.progress_percent is None else str(report.progress_percent),
            "message": report.progress_message,
            "document": report.progress,
            "checkpoint": report.checkpoint,
            "logs": [encode((at, report.fence, *line)).decode() for at, *line in report.logs],
        }
        for report in reports
    ]
    # Before the settlement of the same jobs, after which these words would be stale.
    stale = await scripts.call_whole("report", owner, encode(rows))
    return [job_id.decode() for job_id in stale]


def _arguments(owner: str, settlements: Sequence[Settlement]) -> list[Any]:
    sums: Counter[str] = Counter()
    others = []
    completed: list[Any] = []
    alike: dict[tuple[str, str, str], list[Completed]] = {}
    for place, settlement in enumerate(settlements, 1):
        if isinstance(settlement, Completed):
            lane = (settlement.type, settlement.queue, settlement.tenant_id)
            alike.setdefault(lane, []).append(settlement)
            completed += (
                settlement.id,
                settlement.fence,
                f'"completed",{_facts(settlement)}]',
                settlement.result,
            )
        else:
            others.append(_other(settlement, place))
    for lane, several in alike.items():
        _count(sums, lane, several)
    return [owner, encode({"sums": list(sums.items()), "others": others}), *completed]


def _count(
    sums: Counter[str], lane: tuple[str, str, str], settlements: Sequence[Completed]
) -> None:
    type_, queue, tenant_id = lane
    name = label(type_, queue)
    found: Counter[str] = Counter()
    found["completed"] = len(settlements)
    found["duration_sum"] = sum([s.duration_ms for s in settlements])
    found["wait_sum"] = sum([s.wait_ms for s in settlements])
    for ms, count in Counter([s.duration_ms for s in settlements]).items():
        found[f"duration:{step_of(ms)}"] += count
    for ms, count in Counter([s.wait_ms for s in settlements]).items():
        found[f"wait:{step_of(ms)}"] += count
    longest = max([s.duration_ms for s in settlements])
    for counter, by in found.items():
        sums[f"{counter}\n{name}"] += by
        if tenant_id:
            sums[f"{of_tenant(counter, tenant_id)}\n{name}"] += by
    for counter in (LONGEST, of_tenant(LONGEST, tenant_id))[: 2 if tenant_id else 1]:
        sums[f"{counter}\n{name}"] = max(sums[f"{counter}\n{name}"], longest)
    sums[f"started\n{name}"] += len(settlements)
    for attempts, count in Counter([s.attempts + 1 for s in settlements]).items():
        sums[f"{attempts_name(attempts)}\n{name}"] += count


def _facts(settlement: Settlement) -> str:
    """The part of an execution's JSON array that is about times and resources."""
    cpu_ms = "null" if settlement.cpu_ms is None else settlement.cpu_ms
    memory_kb = "null" if settlement.memory_kb is None else settlement.memory_kb
    times = f"{settlement.started_at},{settlement.wait_ms},{settlement.duration_ms}"
    return f"{times},{cpu_ms},{memory_kb}"


def _other(settlement: Settlement, place: int) -> dict[str, Any]:
    ending: dict[str, Any] = {
        "id": settlement.id,
        "fence": settlement.fence,
        "kind": _KINDS[type(settlement)],
        "place": place,
        "facts": _facts(settlement),
        "started_at": settlement.started_at,
        "duration": f"duration:{step_of(settlement.duration_ms)}",
        "wait": f"wait:{step_of(settlement.wait_ms)}",
        "duration_ms": settlement.duration_ms,
        "wait_ms": settlement.wait_ms,
        "counted": False,
    }
    if isinstance(settlement, Failed | Buried | Crashed):
        ending |= _with_failure(settlement.failure)
    if isinstance(settlement, Failed):
        ending["retry_in_ms"] = settlement.retry_in_ms
        ending["spends_attempt"] = settlement.spends_attempt
        ending["timeout_ms"] = settlement.timeout_ms
    elif isinstance(settlement, Snoozed):
        ending |= {"delay_ms": settlement.delay_ms, "told": told(None, None, settlement.reason)}
    elif isinstance(settlement, Cancelled):
        ending["reason"] = settlement.reason
    elif isinstance(settlement, Crashed):
        ending["max_rescues"] = settlement.max_rescues
    elif isinstance(settlement, HandedBack):
        ending["started"] = settlement.started
    return ending


def _with_failure(failure: Failure) -> dict[str, Any]:
    return {"failure": spelled(failure), "counted": failure.error_class in COUNTED}
