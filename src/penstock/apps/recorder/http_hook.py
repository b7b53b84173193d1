"""Hooks over HTTP: an assistant tells the server instead of starting a process.

It takes a few milliseconds instead of a few dozen, but only while the server runs: what happens
meanwhile nobody records. Assistants are told nothing but `{}`.
"""

import asyncio
from time import time_ns
from typing import TYPE_CHECKING, Any

from penstock.apps.recorder.capture import capture, stub
from penstock.apps.recorder.captured import Captured
from penstock.apps.recorder.gate import cleaner_of
from penstock.apps.recorder.light import loads
from penstock.apps.recorder.platforms import HOOKS, value
from penstock.apps.recorder.writing import write
from penstock.model.errors import InvalidOption

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.extension import Request


async def receive_hook(request: "Request") -> dict[str, Any]:
    """Record what an assistant tells of one event, as its hooks are given it.

    The answer is an empty document: it tells the assistant to go on.
    """
    platform = request.path["platform"]
    if platform not in HOOKS:
        raise InvalidOption("platform", platform, f"one of: {', '.join(HOOKS)}")
    captured = await asyncio.to_thread(_captured, request.app, platform, request.body)
    await write(request.app, [captured._replace(tenant_id=request.tenant or "")])
    return {}


def _captured(app: "Penstock", platform: str, body: bytes) -> Captured:
    now, payload = time_ns() // 1_000_000, None
    try:
        payload = loads(body)
        clean = cleaner_of(app, str(value(payload, "session_id")))
        return capture(platform, "", payload, now, clean)
    except Exception as error:
        problem = f"it could not be read or made safe ({type(error).__name__})"
        return stub(platform, "", payload, now, problem)
