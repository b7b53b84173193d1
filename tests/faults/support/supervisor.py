"""A supervisor in a process of its own. Argument: the spec of its workers, as JSON."""

import asyncio
import sys

import msgspec

from penstock.logs import configure_logs
from penstock.worker.process import WorkerSpec
from penstock.worker.supervisor import Supervisor

if __name__ == "__main__":
    configure_logs(json=True)
    spec = msgspec.json.decode(sys.argv[1], type=WorkerSpec)
    sys.exit(asyncio.run(Supervisor(spec, processes=1).run()))
