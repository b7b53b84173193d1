"""A small application to deploy first; put your own in its place."""

import asyncio

from penstock import Context, Penstock

app = Penstock()


@app.job(name="shop.order", priority=2)
async def order(number: int) -> str:
    """Something urgent, in the queue `default`."""
    return f"order {number} accepted"


@app.job(name="shop.mail", queue="mail", rate="50/s")
async def mail(to: str) -> str:
    """Something for a network, in a queue of its own."""
    await asyncio.sleep(0.01)
    return f"sent to {to}"


@app.job(name="shop.picture", queue="media", run_in="process", timeout=600)
def picture(ctx: Context, path: str) -> str:
    """Something for a processor, which a worker of its own runs."""
    ctx.progress(50, f"half of {path}")
    return f"{path}.small"
