"""A supervisor in a process of its own: `python -m penstock.torture.supervised SPEC`."""

import asyncio
import os
import sys

import msgspec

from penstock.logs import configure_logs
from penstock.worker.process import WorkerSpec
from penstock.worker.respawn import orphaned
from penstock.worker.supervisor import Supervisor

PROCESSES = 2


async def supervise(spec: WorkerSpec) -> int:
    """Supervise until told to stop, or until the torturer itself is gone."""
    supervisor = Supervisor(spec, PROCESSES)

    async def stop_when_orphaned() -> None:
        await orphaned(os.getppid())
        supervisor.stop()

    watching = asyncio.create_task(stop_when_orphaned())
    try:
        return await supervisor.run()
    finally:
        watching.cancel()


if __name__ == "__main__":
    configure_logs(json=True)
    described = msgspec.json.decode(sys.argv[1], type=WorkerSpec)
    sys.exit(asyncio.run(supervise(described)))
