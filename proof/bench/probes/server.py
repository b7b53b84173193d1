"""Measuring the server as its callers meet it: over HTTP, on loopback."""

import asyncio
import random
import time
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Any

import httpx
import msgspec
import psutil

from penstock.app.penstock import Penstock
from penstock.model.ids import new_id
from penstock.server.access.identity import Scope, random_secret
from penstock.server.access.tokens import Tokens
from penstock.server.access.users import COOKIE, Sessions, Users
from proof.bench.processes import cpu_percents
from proof.bench.wire import Wire
from proof.bench.workload import DATA, app_on, noop

ANSWER_SECONDS = 60.0
RARE = 5
FEW_LEFT = 10
LOOK_SECONDS = 1.0
KNOWN = 200

JSON = {"Content-Type": "application/json"}
FILTERS = {
    "newest": {},
    "a common status": {"status": "completed"},
    "a rare status": {"status": "cancelled"},
    "a status nobody has": {"status": "paused"},
    "a type and a status": {"type": noop.name, "status": "queued"},
    "a queue that is nowhere": {"queue": "nowhere"},
    "a tag that is nowhere": {"tag": "nowhere"},
    "a payload that is nowhere": {"payload": "data=nowhere"},
    "a text that is nowhere": {"text": "nowhere"},
}


async def admit(path: str) -> dict[str, str]:
    """Make a token and a browser's session; the headers by which a server on the file knows us."""
    async with app_on(path) as app:
        everything = (Scope.ADMIN,)
        _, token = await Tokens(app.store).create("bench", everything, by="bench")
        user = await Users(app.store).create(new_id(), random_secret(), everything, by="bench")
        cookie = await Sessions(app.store).begin(user)
    return {"Authorization": f"Bearer {token}", "Cookie": f"{COOKIE}={cookie}"}


async def posts(
    path: str, address: str, headers: dict[str, str], requests: int, rate: int
) -> list[float]:
    """The milliseconds from when each single job was due to be sent until it was answered.

    They are sent at a steady rate, whether or not those before are answered, while a worker drains
    the file; it ends early when there is nothing left to drain.
    """
    taken: list[float] = []
    wire = Wire(address, "/api/jobs", {**JSON, **headers}, msgspec.json.encode(_call()))

    async def send(due: float) -> None:
        await wire.send()
        taken.append((time.perf_counter() - due) * 1000)

    async with app_on(path) as app:
        drained = asyncio.create_task(_until_drained(app))
        await wire.send()
        began = time.perf_counter()
        async with asyncio.TaskGroup() as sent:
            for number in range(requests):
                due = began + number / rate
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                if drained.done() and taken:
                    break
                sent.create_task(send(due))
        drained.cancel()
    await wire.close()
    return taken


async def batches(address: str, headers: dict[str, str], jobs: int, batch: int) -> float:
    """Jobs per second in bulk, building the requests and reading the answers included."""
    async with _caller(address, headers) as caller:
        began = time.perf_counter()
        for start in range(0, jobs, batch):
            count = min(batch, jobs - start)
            await _post(caller, [_call() for _ in range(count)])
        return jobs / (time.perf_counter() - began)


async def cancel_some(path: str) -> None:
    """Leave a few cancelled jobs, so that there is a status to look for that few have."""
    async with app_on(path):
        for _ in range(RARE):
            handle = await noop.options(delay=3600).enqueue(DATA)
            await handle.cancel()


async def looks(address: str, headers: dict[str, str], times: int) -> dict[str, list[float]]:
    """The milliseconds of a list page and of `GET /api/jobs` by every filter, and of job pages."""
    taken: dict[str, list[float]] = {}
    async with _caller(address, headers) as caller:
        known = await _known(caller)
        for _ in range(times):
            for name, query in FILTERS.items():
                for kind, where in (("list page", "/jobs"), ("GET /api/jobs", "/api/jobs")):
                    found = await _timed(caller, where, query)
                    taken.setdefault(f"{kind}: {name} ms", []).append(found)
                job_page = await _timed(caller, f"/jobs/{random.choice(known)}", {})
                taken.setdefault("job page ms", []).append(job_page)
    return taken


async def tab(address: str, headers: dict[str, str], pid: int, seconds: float) -> dict[str, float]:
    """How much of a core a server process uses without a tab of the dashboard, and with one."""
    server = psutil.Process(pid)
    async with _caller(address, headers) as caller:
        await _get(caller, "/")
        (without,) = await asyncio.to_thread(cpu_percents, seconds, server)
        async with caller.stream("GET", "/live", timeout=None) as stream:
            stream.raise_for_status()
            fresh = asyncio.create_task(_keep_fresh(caller, stream.aiter_lines()))
            (beside,) = await asyncio.to_thread(cpu_percents, seconds, server)
            if fresh.done():
                fresh.result()
                raise RuntimeError("The server ended the stream of a dashboard tab.")
            fresh.cancel()
    return {"without": without, "with": beside}


def _caller(address: str, headers: dict[str, str]) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=address, headers=headers, timeout=ANSWER_SECONDS, trust_env=False
    )


def _call() -> dict[str, Any]:
    return {"type": noop.name, "payload": {"data": DATA}}


async def _post(caller: httpx.AsyncClient, document: Any) -> None:
    body = msgspec.json.encode(document)
    answer = await caller.post("/api/jobs", content=body, headers=JSON)
    msgspec.json.decode(answer.raise_for_status().content)


async def _get(caller: httpx.AsyncClient, where: str, **options: Any) -> httpx.Response:
    answer = await caller.get(where, **options)
    # A login page is no answer either.
    if answer.status_code != HTTPStatus.OK:
        raise RuntimeError(f"GET {answer.url.path} was answered with {answer.status_code}.")
    return answer


async def _timed(caller: httpx.AsyncClient, where: str, query: dict[str, str]) -> float:
    began = time.perf_counter()
    await _get(caller, where, params=query)
    return (time.perf_counter() - began) * 1000


async def _known(caller: httpx.AsyncClient) -> list[str]:
    """Ids of finished, waiting and cancelled jobs."""
    ids: list[str] = []
    for status in ("completed", "queued", "cancelled"):
        answer = await _get(caller, "/api/jobs", params={"status": status, "limit": KNOWN})
        ids += [job["id"] for job in answer.json()["jobs"]]
    return ids


async def _until_drained(app: Penstock) -> None:
    while True:
        depths = await app.store.metrics.depths()
        if sum(depth.queued for depth in depths) <= FEW_LEFT:
            return
        await asyncio.sleep(LOOK_SECONDS)


async def _keep_fresh(caller: httpx.AsyncClient, lines: AsyncIterator[str]) -> None:
    """Ask for the overview anew whenever the server says that something changed, as tabs do."""
    async for line in lines:
        if line == "event: changed":
            await _get(caller, "/", headers={"HX-Request": "true"})
