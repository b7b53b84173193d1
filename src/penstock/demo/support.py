"""The second act: the shop's agent, whose sessions become memories, patterns and webhooks.

All of it is made up, and stays on this machine: the model is the extractive one, and webhooks go
to a receiver that `penstock up` runs beside the workers.
"""

import asyncio
import itertools
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from penstock.app.extensions import load_extension
from penstock.apps.agents.access import agents_in
from penstock.apps.agents.demo import CLOSED, TENANTS, consolidate, go_on, play, set_quotas
from penstock.apps.agents.files import find_folder
from penstock.demo.jobs import app
from penstock.extension import Extension, Process

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

OWNER = "the shop"
TOPICS = (CLOSED, "job.completed.pattern-training", "job.dead_letter")
BUSY = 7
"""One of so many messages the receiver of the south does not take at once."""

SHOP = Extension(
    name="shop",
    processes=(
        Process(
            name="shop-receiver",
            run="penstock.demo.support:receive",
            wanted="penstock.demo.support:is_played",
            help="Take the webhooks of the demonstration.",
        ),
    ),
)


def prepare() -> None:
    """Switch the agent workers on, with webhooks that may stay on this machine."""
    own = {"webhooks": {"allow": ["127.0.0.0/8"]}}
    app.settings = app.settings.replace(extension={**app.settings.extension, "agents": own})
    app.extensions.enable(load_extension("agents"))
    app.extensions.enable(SHOP)


def is_played(app: "Penstock") -> bool:
    """Whether there is a folder for index files: beside an SQLite file there is."""
    return find_folder(app) is not None


@app.scheduled(name="support", every=8)
@app.job(name="shop.support", queue="shop", max_retries=0)
async def support() -> int:
    """Users ask, the agent helps; at first there were some who have asked before."""
    if not is_played(app):
        return 0
    if not await agents_in(app).sessions.list():
        await set_quotas(app)
        await play(app)
        await learn()
        await remember()
    return await go_on(app, random.Random())


@app.scheduled(name="remember", every=30)
@app.job(name="shop.remember", queue="shop", max_retries=0)
async def remember() -> int:
    """What is remembered of each user is consolidated."""
    if not is_played(app):
        return 0
    return sum([await consolidate(app, tenant) for tenant in TENANTS])


@app.scheduled(name="learn", every=60)
@app.job(name="shop.learn", queue="shop", max_retries=0)
async def learn() -> int:
    """Patterns are looked for in what was asked."""
    if not is_played(app):
        return 0
    for tenant in TENANTS:
        data = {"batchSize": 500, "epochs": 5}
        await agents_in(app).enqueue("pattern-training", data, tenant=tenant, key="learn")
    return len(TENANTS)


async def receive(app: "Penstock") -> None:
    """Take webhooks until the demonstration is over."""
    async with listening(app):
        await asyncio.Event().wait()


@asynccontextmanager
async def listening(app: "Penstock") -> AsyncGenerator[None]:
    """Take webhooks on this machine, and tell the shop where."""
    taken = itertools.count(1)

    async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        lines = [line.partition(":") for line in head.lower().split("\r\n")]
        size = next(int(value) for name, _, value in lines if name == "content-length")
        await reader.readexactly(size)
        number = next(taken)
        busy = head.startswith("POST /south ") and number % BUSY == 0
        status, body = ("503 Busy", "try again") if busy else ("200 OK", f"message {number} taken")
        told = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
        writer.write((told + body).encode())
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(take, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        await _told(app, f"http://127.0.0.1:{port}")
        yield


async def _told(app: "Penstock", address: str) -> None:
    """Have a webhook for each tenant, and those that are there go to this address."""
    webhooks = agents_in(app).webhooks
    known = {each.tenant_id: each.id for each in await webhooks.list() if each.owner == OWNER}
    for tenant in TENANTS:
        url = f"{address}/{tenant}"
        if tenant in known:
            await webhooks.change(known[tenant], url=url)
        else:
            await webhooks.add(url, topics=TOPICS, tenant=tenant, owner=OWNER)
