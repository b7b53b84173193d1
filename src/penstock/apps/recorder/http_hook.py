"""Hooks over HTTP: an assistant tells the server instead of starting a process.

It takes a few milliseconds instead of a few dozen, but only while the server runs: what happens
meanwhile nobody records. Assistants are told nothing but `{}`.
"""

import asyncio
from functools import cache
from time import time_ns
from typing import TYPE_CHECKING, Any

from penstock.apps.recorder.capture import capture, cleaner, stub
from penstock.apps.recorder.captured import Captured
from penstock.apps.recorder.light import loads
from penstock.apps.recorder.platforms import HOOKS
from penstock.apps.recorder.writing import write
from penstock.model.errors import InvalidOption

if TYPE_CHECKING:
    from penstock.apps.recorder.capture import Clean
    from penstock.extension import Request


async def receive_hook(request: "Request") -> dict[str, Any]:
    """Record what an assistant tells of one event, as its hooks are given it.

    The answer is an empty document: it tells the assistant to go on.
    """
    platform = request.path["platform"]
    if platform not in HOOKS:
        raise InvalidOption("platform", platform, f"one of: {', '.join(HOOKS)}")
    captured = await asyncio.to_thread(_captured, platform, request.body)
    await write(request.app, [captured._replace(tenant_id=request.tenant or "")])
    return {}


def _captured(platform: str, body: bytes) -> Captured:
    now, payload = time_ns() // 1_000_000, None
    try:
        payload = loads(body)
        return capture(platform, "", payload, now, _clean())
    except Exception as error:
        problem = f"it could not be read or made safe ({type(error).__name__})"
        return stub(platform, "", payload, now, problem)


@cache
def _clean() -> "Clean":
    return cleaner()[0]
