"""Two servers on one store, and a caller who meets now the one and now the other."""

import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import httpx
import pytest

from penstock import Penstock
from penstock.config import Settings
from penstock.server.app import create_server
from penstock.server.guard import CSRF_HEADER

ADDRESS = "http://localhost"


@pytest.fixture
async def clients(app: Penstock) -> AsyncIterator[list[httpx.AsyncClient]]:
    """A client of each."""
    other = Penstock(settings=Settings(url=app.settings.url, requests_per_minute=0))

    @other.job
    async def add(a: int, b: int = 1) -> int:
        return a + b

    async with AsyncExitStack() as stack:
        made: list[httpx.AsyncClient] = []
        for each in (app, other):
            server = create_server(each, trusts_callers=True)
            await stack.enter_async_context(server.router.lifespan_context(server))
            transport = httpx.ASGITransport(server, raise_app_exceptions=False)
            client = httpx.AsyncClient(transport=transport, base_url=ADDRESS)
            made.append(await stack.enter_async_context(client))
        yield made


async def test_a_form_of_one_may_be_sent_to_the_other(clients: list[httpx.AsyncClient]) -> None:
    one, other = clients
    page = (await one.get("/queues")).text
    found = re.search(r'name="csrf"[^>]*value="([^"]+)"', page)
    assert found, page
    told = {CSRF_HEADER: found[1], "Origin": ADDRESS}
    answer = await other.post("/api/jobs", json={"type": "add", "payload": {"a": 1}}, headers=told)
    assert answer.status_code == 201, answer.text
    refused = await other.post("/api/jobs", json={}, headers={**told, CSRF_HEADER: "made up"})
    assert refused.status_code == 403


async def test_the_same_key_makes_one_job_whoever_is_asked(
    clients: list[httpx.AsyncClient],
) -> None:
    told = {"type": "add", "payload": {"a": 1}, "key": "order-7"}
    answers = [(await each.post("/api/jobs", json=told)).json() for each in (*clients, *clients)]
    assert len({answer["id"] for answer in answers}) == 1
    assert [answer["created"] for answer in answers] == [True, False, False, False]


async def test_a_page_of_one_goes_on_at_the_other(clients: list[httpx.AsyncClient]) -> None:
    calls = [{"type": "add", "payload": {"a": n}} for n in range(9)]
    made = (await clients[0].post("/api/jobs", json=calls)).json()
    seen: list[str] = []
    cursor: dict[str, str] = {}
    for turn in range(5):
        page = (await clients[turn % 2].get("/api/jobs", params={"limit": "2", **cursor})).json()
        seen += [job["id"] for job in page["jobs"]]
        cursor = {"before": str(page["next"])}
    assert seen == [answer["id"] for answer in reversed(made)]
