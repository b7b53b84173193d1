"""FlexiQ on whatever store its URL names; the setting is its threads.

On SQLite it commits with `synchronous=NORMAL`: it does not wait for the disk.
"""

import logging

from flexiq import Queue
from harness import DATA, TALLY, Peer, batches, main

logging.disable(logging.CRITICAL)


def noop(data: str, sent_ns: int = 0) -> None:  # noqa: ARG001
    TALLY.end(sent_ns)


def queue_at(url: str, threads: int = 1) -> Queue:
    kind = url.partition(":")[0]
    if kind == "sqlite":
        return Queue(db_path=url.removeprefix("sqlite:///"), workers=threads)
    backend = "postgres" if kind == "postgresql" else "redis"
    return Queue(backend=backend, db_url=url, workers=threads)


class Flexiq(Peer):
    def setup(self) -> None:
        self.open()

    def open(self) -> None:
        self._queue = queue_at(self.url)
        self._task = self._queue.task(name="noop")(noop)

    def enqueue(self, jobs: int) -> None:
        for count in batches(jobs):
            self._queue.enqueue_many("noop", [(DATA,)] * count)

    def enqueue_one(self, sent_ns: int) -> None:
        self._task.delay(DATA, sent_ns)

    def work(self, setting: int) -> None:
        queue = queue_at(self.url, setting)
        queue.task(name="noop")(noop)
        TALLY.wait_for_start()
        queue.run_worker()


if __name__ == "__main__":
    main(Flexiq)
