"""Stores that have a server, and looking whether what they hold is sound."""

from collections import Counter
from collections.abc import Sequence
from urllib.parse import parse_qs, urlsplit

import redis

from penstock.model.job import Job
from penstock.store.contract import Execution, JobFilter, Store
from proof.torture import differences
from tests.faults.support.facts import TORTURE
from tests.support.places import LONG, Place
from tests.support.redis_audit import audit

SERVERS = ("postgres", "valkey")
PLACES = (*SERVERS, "postgres+redis")


def on(kind: str) -> tuple[str, ...]:
    """The stores of a fault that a process handles whatever its store: one in the short form."""
    return SERVERS if LONG or TORTURE else (kind,)


async def check_structure(place: Place, store: Store) -> None:
    """Every promise holds, and no index tells something else than the jobs."""
    # The horizon is that of the whole server, and a matter of its speed.
    checks = [check for check in (await store.inspect()).checks if check[0] != "horizon"]
    failing = [f"{name}: {told}" for name, held, told in checks if not held]
    assert failing == [], failing
    if place.kind.startswith("postgres"):
        differing = list(differences(place.url))
        assert differing == [], differing
    else:
        namespace = parse_qs(urlsplit(place.url).query).get("namespace", ["penstock"])[-1]
        with redis.Redis.from_url(place.url.partition("?")[0]) as client:
            audit(client, f"{{{namespace}}}:")


async def statuses(store: Store, ids: Sequence[str]) -> Counter[str]:
    """How many of these jobs have which status; those that are not there are `lost`."""
    found: list[Job] = []
    for start in range(0, len(ids), 500):
        found += await store.reader.get(ids[start : start + 500])
    return Counter(job.status.value for job in found) + Counter(lost=len(ids) - len(found))


async def executions(store: Store, ids: Sequence[str]) -> list[Execution]:
    """All executions of these jobs."""
    return [execution for job_id in ids for execution in await store.reader.executions(job_id)]


async def everything(store: Store) -> list[Job]:
    """All jobs, page by page."""
    jobs: list[Job] = []
    while page := await store.reader.find(
        JobFilter(before=jobs[-1].id if jobs else None, limit=1000)
    ):
        jobs += page
    return jobs
