"""A worker that dies at a failpoint.

Arguments: the store's address, the failpoint, its owner's name.
"""

import asyncio
import sys

from penstock import Worker
from proof.failpoints import arm
from tests.faults.support.jobs import app
from tests.faults.support.work import settings_of


async def main(address: str, point: str, owner: str) -> None:
    app.settings = app.settings.replace(**settings_of(address))
    arm(app.store, point)
    await Worker(app, concurrency=1, owner=owner, burst=True).run()


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2], sys.argv[3]))
