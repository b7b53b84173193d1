"""A worker that publishes learnings, and is killed right after a step, if one is named.

Arguments: the store's address, the settings of publishing as JSON, its owner's name, the step.
"""

import asyncio
import json
import os
import signal
import sys
from collections.abc import Awaitable, Callable
from typing import Any

from penstock import Penstock, Settings, Worker
from penstock.apps.recorder.captured import QUEUE
from penstock.apps.recorder.extension import recorder
from penstock.apps.recorder.publish.chain import Chain
from penstock.apps.recorder.publish.kubo import Kubo
from penstock.apps.recorder.publish.upload import Uploader

STEPS: dict[str, tuple[type[Any], str, str]] = {
    "document written": (Uploader, "_run", "freeze_upload"),
    "pinned": (Kubo, "add", ""),
    "pin written": (Uploader, "_run", "ipfs_uploaded"),
    "registry read": (Chain, "entry", ""),
    "signed and written": (Uploader, "_write", ""),
    "sent": (Chain, "send", ""),
    "block written": (Uploader, "_run", "mined"),
    "confirmed": (Uploader, "_run", "confirmed"),
}
"""The method whose end is the step; of one that runs statements, the statement."""


def arm(step: str) -> None:
    """Kill this process as soon as a step was taken."""
    owner, name, statement = STEPS[step]
    taken: Callable[..., Awaitable[Any]] = getattr(owner, name)

    async def doomed(self: Any, *given: Any, **told: Any) -> Any:
        done = await taken(self, *given, **told)
        if not statement or given[0] == statement:
            os.kill(os.getpid(), signal.SIGKILL)
        return done

    setattr(owner, name, doomed)


async def main(url: str, publish: str, owner: str, step: str = "") -> None:
    if step:
        arm(step)
    settings = Settings(url=url, extension={"recorder": {"publish": json.loads(publish)}})
    app = Penstock(settings=settings, extensions=[recorder])
    await Worker(app, queues=[QUEUE], concurrency=1, owner=owner, burst=True, upkeep=False).run()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
