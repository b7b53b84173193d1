"""An application in which agents have something of everything, for pages, routes and commands."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from msgspec import Struct
from msgspec.json import encode

from penstock import Penstock
from penstock.apps.agents.memory.records import Memory, NewMemory
from penstock.apps.agents.sessions.records import NewTurn
from penstock.testing import drain

TENANT = "north"
SAYINGS = (
    "Ada lives in Turin.",
    "Ada prefers tea to coffee in the morning.",
    "The invoice of Ada is due on the fifth of May.",
)
ANSWER = "<b>taken</b>, with thanks"


class Furnished(Struct, frozen=True, kw_only=True):
    """What there is, by id."""

    memories: list[str]
    merged: str
    session: str
    pattern: str
    webhook: str


async def remember(
    app: Penstock, *sayings: str, tenant: str = TENANT, user: str | None = "ada"
) -> list[Memory]:
    """Have an agent remember some sayings."""
    news = [NewMemory(content=each, user_id=user) for each in sayings]
    added = await app.agents.memories.add_many(news, tenant=tenant)
    return [each.memory for each in added]


async def hold_session(
    app: Penstock, asked: str = "Refund order 7", *, tenant: str = TENANT, ends_well: bool = True
) -> str:
    """Have a user and an agent talk, and the agent use a tool."""
    sessions = app.agents.sessions
    session = await sessions.open(tenant=tenant, user="ada")
    await sessions.add(
        session.id,
        NewTurn(role="user", content=asked),
        NewTurn(role="tool", content="refunded", skill_id="refund", succeeded=ends_well),
        NewTurn(role="assistant", content="It is done."),
        NewTurn(role="user", content="Thanks, that works." if ends_well else "That is wrong."),
    )
    await sessions.close(session.id)
    return str(session.id)


async def put_pattern(
    app: Penstock, pattern_id: str, content: str, *exemplars: str, tenant: str = TENANT
) -> str:
    """Have a pattern learned from some trajectories, as training writes it."""
    row = {
        "id": pattern_id,
        "tenant_id": tenant,
        "pattern_type": "workflow",
        "content": content,
        "exemplar_trajectory_ids": encode(exemplars).decode(),
        "confidence": 0.9,
        "is_active": 1,
        "metadata": "{}",
    }
    await app.transact(lambda tx: tx.agents.run("put_pattern", row | {"now": tx.now}))
    return pattern_id


async def furnish(app: Penstock, url: str, word: str = "", *, tenant: str = TENANT) -> Furnished:
    """Have something of everything; `word` stands wherever people write something."""
    saying = [f"{each} {word}".strip() for each in SAYINGS]
    memories = await remember(app, *saying, tenant=tenant)
    first, second, third = (each.id for each in memories)
    own = app.agents.memories
    merged = await own.merge([first, second], content=f"Ada of Turin drinks tea. {word}".strip())
    await own.link(third, merged.id, "related_to")
    session = await hold_session(app, f"Refund order 7 {word}".strip(), tenant=tenant)
    made = await app.agents.webhooks.add(
        url, topics=["order.shipped"], tenant=tenant, owner=word or "ada"
    )
    await app.agents.webhooks.publish("order.shipped", {"word": word or "none"}, tenant=tenant)
    await app.agents.quotas.set(tenant, "jobs", 10, action="warn", period="total")
    await app.agents.enqueue("data-export", {}, tenant=tenant)
    await drain(app)
    [task] = await app.agents.learning.trajectories(session=session)
    pattern = await put_pattern(
        app, f"pattern-{tenant}", f"Refunds go well with refund. {word}", task.id, tenant=tenant
    )
    return Furnished(
        memories=[first, second, third],
        merged=merged.id,
        session=session,
        pattern=pattern,
        webhook=made.webhook.id,
    )


class Receiver:
    """Takes webhooks on this machine, and answers with `status` and `answer`."""

    def __init__(self) -> None:
        self.status = 200
        self.answer = ANSWER
        self.taken = 0
        self.url = ""

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Take one request."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        size = int(head.partition("content-length: ")[2].partition("\r\n")[0])
        await reader.readexactly(size)
        self.taken += 1
        body = self.answer.encode()
        writer.write(
            f"HTTP/1.1 {self.status} So\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body
        )
        await writer.drain()
        writer.close()


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """A receiver that listens."""
    receiver = Receiver()
    server = await asyncio.start_server(receiver.handle, "127.0.0.1", 0)
    port: Any = server.sockets[0].getsockname()[1]
    receiver.url = f"http://127.0.0.1:{port}/hooks"
    async with server:
        yield receiver
