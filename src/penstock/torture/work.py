"""The jobs of a torture run: each sleeps a little and leaves a trace outside the store."""

import asyncio
import os
import time

from penstock.app.context import Context
from penstock.app.penstock import Penstock

QUEUE = "penstock-torture"
TARGET = f"{__name__}:app"

app = Penstock()


@app.job(name="penstock.torture.loop", queue=QUEUE, timeout=60)
async def in_loop(ctx: Context, effects: str, seconds: float) -> int:
    """Run in the worker's event loop."""
    ctx.progress(50, str(ctx.fence))
    await asyncio.sleep(seconds)
    return leave_effect(ctx, effects)


@app.job(name="penstock.torture.thread", queue=QUEUE, timeout=60)
def in_thread(ctx: Context, effects: str, seconds: float) -> int:
    """Run in a thread of the worker."""
    ctx.progress(50, str(ctx.fence))
    time.sleep(seconds)
    return leave_effect(ctx, effects)


@app.job(name="penstock.torture.process", queue=QUEUE, timeout=60, run_in="process")
def in_process(ctx: Context, effects: str, seconds: float) -> int:
    """Run in a process of its own."""
    ctx.progress(50, str(ctx.fence))
    time.sleep(seconds)
    return leave_effect(ctx, effects)


def leave_effect(ctx: Context, path: str) -> int:
    """Append one line, which no death can take back; the fence, which the store keeps as result."""
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        os.write(log, f"{ctx.id} {ctx.attempt} {ctx.fence}\n".encode())
    finally:
        os.close(log)
    return ctx.fence
