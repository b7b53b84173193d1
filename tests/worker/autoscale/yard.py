"""An application whose jobs hold until a file is there."""

import asyncio
from pathlib import Path

from penstock import Penstock, Settings

app = Penstock(settings=Settings(url="sqlite:///yard.db", prefetch=0, heartbeat_interval=0.2))


@app.job
async def hold(gate: str) -> None:
    while not await asyncio.to_thread(Path(gate).exists):  # noqa: ASYNC110 - nothing rings
        await asyncio.sleep(0.01)
