"""The jobs that are measured: handlers that do nothing, and one that tells when it started."""

import time

from penstock.app.penstock import Penstock
from penstock.config import Settings

TARGET = "proof.bench.workload:app"
DATA = "x" * 89
PAYLOAD = f'{{"data":"{DATA}"}}'  # 100 bytes

# Given whole, so that neither the environment nor a penstock.toml changes what is measured.
app = Penstock(settings=Settings(queue_limit=0))


@app.job
async def noop(data: str) -> None:
    """Do nothing with a payload of 100 bytes."""


@app.job
async def link(number: int) -> int:
    """One link of a chain."""
    return number


@app.job
async def stamp(sent_ns: int) -> int:
    """The nanoseconds between the call of enqueue, in another process, and this line."""
    return time.monotonic_ns() - sent_ns


def app_on(path: str) -> Penstock:
    """The application on a file."""
    app.settings = app.settings.replace(url=f"sqlite:///{path}")
    return app
