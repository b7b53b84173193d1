"""Several workers of penstock in one process, each with an application and connections of its own.

The setting is their number. The URL is up to three words: the store, the Redis beside it, and how
many ready jobs of a lane that one holds.
"""

import asyncio

from harness import TALLY, main
from penstock_peer import PenstockPeer, noop

from penstock import Penstock
from penstock.config import Settings
from penstock.worker import loop
from penstock.worker.worker import Worker

CONCURRENCY = 20
PREFETCH = 100


class FleetPeer(PenstockPeer):
    def __init__(self, url: str) -> None:
        store, *beside = url.split()
        super().__init__(store)
        self._settings = Settings(
            url=store,
            dispatch=beside[0] if beside else None,
            dispatch_window=int(beside[1]) if beside else 0,
            queue_limit=0,
            prefetch=PREFETCH,
        )
        self._app = self._make()
        self._job = self._app.job(noop)

    def work(self, setting: int) -> None:
        loop.run(self._work_together(setting))

    async def _work_together(self, count: int) -> None:
        apps = [self._make() for _ in range(count)]
        for app in apps:
            app.job(noop)
            await app.__aenter__()
        TALLY.wait_for_start()
        await asyncio.gather(*(Worker(app, concurrency=CONCURRENCY).run() for app in apps))

    def _make(self) -> Penstock:
        return Penstock(settings=self._settings)


if __name__ == "__main__":
    main(FleetPeer)
