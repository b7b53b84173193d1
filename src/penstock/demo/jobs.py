"""The jobs of the demonstration; worker processes import this module."""

import asyncio
import math
import random
import time

from penstock.app.context import Context
from penstock.app.penstock import Penstock
from penstock.config import Settings
from penstock.model.outcome import Dead

# Short leases and beats, so that a rescue is seen within seconds. The worker's URL replaces this.
app = Penstock(
    settings=Settings(
        url="sqlite:///penstock-demo.db",
        lease=4,
        renew_interval=1,
        heartbeat_interval=0.5,
        poll_interval=0.5,
        rescue_interval=1,
        drain_timeout=5,
        prune_interval=60,
        keep_completed=6 * 3_600,
    )
)

ROWS = 40


@app.job(name="demo.mail", queue="mail", priority=3)
async def mail(to: str) -> str:
    """An asynchronous job: a short wait for the network."""
    await asyncio.sleep(random.uniform(0.05, 0.35))
    return f"sent to {to}"


@app.job(name="demo.thumbnail", queue="media")
def thumbnail(path: str, width: int) -> str:
    """A plain function: it runs in a thread."""
    time.sleep(random.uniform(0.05, 0.3))
    return f"{path}@{width}"


@app.job(name="demo.montage", queue="media")
async def montage(pictures: list[str]) -> str:
    """The last step of a flow: it takes the results of all steps before it."""
    return f"{len(pictures)} pictures in one"


@app.job(name="demo.text", queue="mail", rate="5/s")
async def text(to: str) -> str:
    """A job whose provider takes five a second, from all workers together."""
    await asyncio.sleep(0.02)
    return f"told {to}"


@app.job(name="demo.render", queue="media", run_in="process", priority=2, timeout=120)
def render(ctx: Context, title: str, seconds: float) -> float:
    """Work for a processor: it runs in a process of its own and tells its progress."""
    began = time.monotonic()
    total = 0.0
    while (spent := time.monotonic() - began) < seconds:
        total += sum(math.sqrt(n) for n in range(20_000))
        ctx.progress(100 * spent / seconds, f"rendering {title}")
    ctx.progress(100, f"rendered {title}")
    return round(total)


@app.job(name="demo.invoice", queue="billing", retry_delay=1, max_retries=4)
async def invoice(ctx: Context, number: int, failures: int) -> str:
    """A job whose bank is away for a while: it fails, waits longer each time, and succeeds."""
    await asyncio.sleep(0.05)
    if ctx.attempt <= failures:
        raise ConnectionError(f"the bank did not answer (attempt {ctx.attempt})")
    ctx.log(f"paid at attempt {ctx.attempt}")
    return f"invoice {number} paid"


@app.job(name="demo.charge", queue="billing")
async def charge(order: str) -> str:
    """A job that can never succeed, and says so."""
    await asyncio.sleep(0.05)
    raise Dead(f"order {order!r} has no customer; no retry will change that")


@app.job(name="demo.import", queue="data", timeout=60)
async def import_rows(ctx: Context, file: str, pause: float) -> int:
    """A long job that saves where it is; after a kill it goes on from there."""
    start = int(ctx.checkpoint or 0)
    if start:
        ctx.log(f"resuming {file} at row {start} of {ROWS}")
    for row in range(start, ROWS):
        await asyncio.sleep(pause)
        if row % 4 == 3:
            await ctx.save_checkpoint(row + 1)
        resumed = f", resumed at {start}" if start else ""
        ctx.progress(100 * (row + 1) / ROWS, f"{file}: row {row + 1} of {ROWS}{resumed}")
    return ROWS - start


@app.job(name="demo.ping", queue="default")
async def ping(number: int) -> int:
    """The smallest job, to show how many go through."""
    return number
