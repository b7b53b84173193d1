"""An application that publishes to a Kubo-shaped server and to a real EVM, and learnings for it."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from penstock import Penstock, Settings
from penstock.apps.recorder.extension import recorder
from penstock.apps.recorder.learnings import EXTRACTION, Learnings, record
from penstock.apps.recorder.outbound import Later
from penstock.apps.recorder.publish.upload import publish
from penstock.apps.recorder.records import Learning
from penstock.events.event import NewEvent
from penstock.testing.clock import FakeClock
from proof.servers.evm import SENDER, EvmNode
from proof.servers.kubo import KuboNode

KEY = "SENDER_KEY"


def publishing(evm: EvmNode, kubo: KuboNode, **told: Any) -> dict[str, Any]:
    """The settings that name both."""
    return {
        "enabled": True,
        "kubo": kubo.url,
        "rpc": evm.url,
        "chain_id": evm.chain_id,
        "contract": evm.contract,
        "key": f"env:{KEY}",
        "confirmations": 1,
        **told,
    }


@asynccontextmanager
async def recorder_app(
    clock: FakeClock | None = None, url: str = "sqlite:///:memory:", **told: Any
) -> AsyncGenerator[Penstock, None]:
    """An application with the recorder, and these settings of it."""
    settings = Settings(url=url, extension={"recorder": told})
    async with Penstock(settings=settings, extensions=[recorder], clock=clock) as app:
        yield app


async def a_learning(app: Penstock, title: str = "Use WAL", **told: Any) -> Learning:
    """A learning that was just found, in a session of its own."""
    found = {
        "category": "pattern",
        "title": title,
        "content": f"{title}: readers go on while somebody writes.",
        "confidence": 0.75,
        "tags": ["sqlite"],
        "source_message_ids": ["m1"],
        **told,
    }
    payload = {
        "version": "1.1",
        "outcome": "learned",
        "value": 0.7,
        "source": "offline",
        "learnings": [found],
    }
    event = NewEvent(
        event_type=EXTRACTION, session_id=f"s {title}", platform="cursor", payload=payload
    )
    await app.transact(lambda tx: record(app, tx, event))
    [learning] = [each for each in await Learnings(app).list() if each.title == title]
    return learning


async def publish_all(app: Penstock, learning: Learning, evm: EvmNode) -> dict[str, Any]:
    """Publish a learning, with blocks being mined meanwhile."""
    while True:
        try:
            return await publish(app, learning.id)
        except Later:
            evm.mine()


__all__ = ["KEY", "SENDER", "a_learning", "publish_all", "publishing", "recorder_app"]
