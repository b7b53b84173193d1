"""Counts a Redis installation anew, job by job, and compares it with what its indexes say."""

from collections import Counter
from collections.abc import Iterator
from typing import Any

import redis
from msgspec.json import decode

from penstock.model.job import rank
from penstock.store.contract import OPEN

ENDED = ("completed", "cancelled", "dead_letter")
WAITING = ("pending", "queued", "failed")
NUMBERS = ("waiting_on", "fence", "attempts", "snoozes", "rescues")

Job = dict[str, str]
Scores = dict[str, float]


class Audit:
    """All that is kept under one prefix."""

    def __init__(self, client: "redis.Redis", prefix: str) -> None:
        self._client = client
        self._prefix = prefix
        ids = [key.partition("job:")[2] for key in self._keys("job:")]
        self.jobs = {job_id: self.hash(f"job:{job_id}") for job_id in ids}

    def _keys(self, beginning: str) -> list[str]:
        pattern = self._prefix.replace("[", r"\[") + beginning + "*"
        return sorted(key.decode() for key in self._client.scan_iter(pattern, count=1000))

    def names(self, beginning: str) -> list[str]:
        """What follows a beginning in the names of keys."""
        return [key.removeprefix(self._prefix + beginning) for key in self._keys(beginning)]

    def hash(self, name: str) -> dict[str, str]:
        """A hash as text."""
        found: Any = self._client.hgetall(self._prefix + name)
        return {field.decode(): value.decode() for field, value in found.items()}

    def scores(self, name: str) -> Scores:
        """A sorted set: members with their scores."""
        found: Any = self._client.zrange(self._prefix + name, 0, -1, withscores=True)
        return {member.decode(): score for member, score in found}

    def members(self, name: str) -> set[str]:
        """A set as text."""
        found: Any = self._client.smembers(self._prefix + name)
        return {member.decode() for member in found}

    def with_status(self, *statuses: str) -> Iterator[tuple[str, Job]]:
        """The jobs that stand somewhere."""
        return ((i, job) for i, job in self.jobs.items() if job["status"] in statuses)


def audit(client: "redis.Redis", prefix: str) -> None:
    """Fail where an index and the jobs themselves tell different things."""
    found = Audit(client, prefix)
    assert found.scores("jobs").keys() == found.jobs.keys()
    _check_places(found)
    _check_leases(found)
    _check_counts(found)
    _check_edges(found)
    _check_children(found)
    _check_lines(found)
    _check_dead_letters(found)
    _check_keys(found)


def _due(job: Job) -> int:
    return int(job.get("scheduled_at") or job["created_at"])


def _ended(job: Job) -> int:
    at = job.get("completed_at") or decode(job[f"x{job['fence']}"])[0]
    return int(at)


def _waits(job: Job) -> bool:
    return int(job.get("waiting_on") or 0) > 0


def _check_places(found: Audit) -> None:
    lanes: dict[str, Scores] = {}
    for job_id, job in found.with_status("queued"):
        priority = int(job.get("priority", 5))
        score = rank(_due(job), priority)
        lanes.setdefault(job["lane"], {})[f"{priority - 1}{job_id}"] = score
    assert {lane: found.scores(f"lane:{lane}") for lane in found.names("lane:")} == lanes
    assert lanes.keys() <= {entry.partition("\n")[2] for entry in found.scores("lanes")}
    due = {i: _due(job) for i, job in found.with_status("pending", "failed") if not _waits(job)}
    assert found.scores("due") == due
    waiting = found.with_status(*WAITING)
    expiring = {i: int(job["expires_at"]) for i, job in waiting if job.get("expires_at")}
    assert found.scores("expiring") == expiring
    for status in ENDED:
        ended = {i: _ended(job) for i, job in found.with_status(status)}
        assert found.scores(f"ended:{status}") == ended


def _check_leases(found: Audit) -> None:
    running = dict(found.with_status("in_progress"))
    leases = {o: set(found.scores(f"leases:{o}")) for o in found.names("leases:")}
    owners: dict[str, set[str]] = {}
    stops: dict[str, set[str]] = {}
    for job_id, job in running.items():
        owners.setdefault(job["lease_owner"], set()).add(job_id)
        if job.get("cancel_requested_at"):
            stops.setdefault(job["lease_owner"], set()).add(job_id)
    assert leases == owners
    assert owners.keys() <= found.members("owners")
    assert {o: found.members(f"stops:{o}") for o in found.names("stops:")} == stops


def _check_counts(found: Audit) -> None:
    depths: Counter[str] = Counter()
    of_tenants: dict[str, Counter[str]] = {}
    leased: Counter[str] = Counter()
    started: Counter[str] = Counter()
    for job in found.jobs.values():
        status = job["status"]
        if status in ENDED:
            continue
        queue, tenant, *_ = decode(job["lane"])
        place = "blocked" if status == "pending" and _waits(job) else status
        depths[f"{place} {queue}"] += 1
        if tenant:
            of_tenants.setdefault(tenant, Counter())[f"{place} {queue}"] += 1
        if status == "in_progress":
            leased[f"{job['lane']}\n{job['lease_owner']}"] += 1
            started[f"{job['lane']}\n{job['lease_owner']}"] += bool(job.get("started_at"))
    for name, counted in (("depths", depths), ("leased", leased), ("started", started)):
        assert {f: int(n) for f, n in found.hash(name).items()} == +counted, name
    assert set(found.names("depths:")) == of_tenants.keys()
    for tenant, counted in of_tenants.items():
        assert {f: int(n) for f, n in found.hash(f"depths:{tenant}").items()} == counted, tenant


def _check_edges(found: Audit) -> None:
    opened: Counter[str] = Counter()
    awaited: set[str] = set()
    for child in found.names("edges:"):
        if child == "open":
            continue
        for field, value in found.hash(f"edges:{child}").items():
            if value.startswith("- "):
                opened[child] += 1
                awaited.add(field.partition("\n")[0])
    waiting = {i: int(job.get("waiting_on") or 0) for i, job in found.jobs.items()}
    assert {i: n for i, n in waiting.items() if n} == dict(opened)
    assert found.members("edges:open") == awaited


def _check_children(found: Audit) -> None:
    children: dict[str, Scores] = {}
    for child in set(found.names("edges:")) - {"open"}:
        assert child in found.jobs
        for field, value in found.hash(f"edges:{child}").items():
            parent, _, rest = field.partition("\n")
            closed = 0.0 if value.startswith("- ") else 1.0
            children.setdefault(parent, {})[f"{child}\n{rest}"] = closed
    assert {p: found.scores(f"children:{p}") for p in found.names("children:")} == children
    for child in found.names("inputs:"):
        assert found.hash(f"inputs:{child}").keys() <= found.hash(f"edges:{child}").keys()


def _check_lines(found: Audit) -> None:
    firsts: Counter[str] = Counter()
    standing: dict[str, set[str]] = {}
    for job_id, job in found.jobs.items():
        if "line" not in job or not job.get("queued_at") or job["status"] in ENDED:
            continue
        standing.setdefault(job["line"], set()).add(job_id)
        edges = found.hash(f"edges:{job_id}").items()
        ahead = [f for f, value in edges if "\norder\n" in f and value.startswith("- ")]
        firsts[job["line"]] += not ahead
    lasts = found.hash("lines")
    assert lasts.keys() == standing.keys() == firsts.keys()
    assert set(firsts.values()) <= {1}
    assert all(last in standing[line] for line, last in lasts.items())
    assert found.hash("pauses:jobs").keys() == dict(found.with_status("paused")).keys()


def _check_dead_letters(found: Audit) -> None:
    letters = [name for name in found.names("dead:") if name != "seq"]
    rows = {job_id: found.hash(f"dead:{job_id}") for job_id in letters}
    rows = {job_id: row for job_id, row in rows.items() if "resolution" in row}
    assert found.scores("dead").keys() == rows.keys()
    deaths = found.scores("dead")
    opened: dict[str, dict[str, float]] = {}
    for job_id, row in rows.items():
        if row["resolution"] in set(OPEN):
            for name in ("letters:open", f"letters:open:{decode(row['lane'])[2]}"):
                opened.setdefault(name, {})[job_id] = deaths[job_id]
    assert {name: found.scores(name) for name in opened} == opened
    assert {f"letters:{name}" for name in found.names("letters:")} == opened.keys()
    _check_groups(found, rows, deaths)


def _check_groups(found: Audit, rows: dict[str, Job], deaths: Scores) -> None:
    lists: dict[str, Scores] = {}
    for job_id, row in rows.items():
        _, tenant, type_, _ = decode(row["lane"])
        for scope in ("*", f"={tenant}"):
            group = f"{type_}\n{row['fingerprint']}"
            lists.setdefault(f"group:{scope}\n{group}", {})[job_id] = deaths[job_id]
            if row["resolution"] in set(OPEN):
                lists.setdefault(f"group:open:{scope}\n{group}", {})[job_id] = deaths[job_id]
        if row.get("canary_of"):
            lists.setdefault(f"canaries:{row['canary_of']}", {})[job_id] = deaths[job_id]
    for name in [name for name in lists if name.startswith("group:")]:
        which, _, group = name.partition("\n")
        newest = max(lists[name.replace("group:open:", "group:", 1)].values())
        lists.setdefault(which.replace("group", "groups", 1), {})[group] = newest
    kept = [f"{b}{name}" for b in ("group:", "groups:", "canaries:") for name in found.names(b)]
    assert {name: found.scores(name) for name in kept} == lists


def _check_keys(found: Audit) -> None:
    held = found.hash("keys")
    windows = {key for key, value in held.items() if value.startswith("window ")}
    assert set(found.scores("keys:expiring")) == windows
    for key, value in held.items():
        scope, _, job_id = value.split(" ", 2)
        if scope in ("while_pending", "until_done"):
            job = found.jobs[job_id]
            assert job["key"] == key
            assert job["status"] not in ENDED
