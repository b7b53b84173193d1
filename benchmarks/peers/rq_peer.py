"""rq on Redis with its worker that does not fork; it runs one job at a time."""

import logging

from harness import DATA, TALLY, Peer, batches, main
from redis import Redis
from rq import Queue, SimpleWorker

logging.disable(logging.CRITICAL)

TASK = "rq_peer.noop"


def noop(data: str, sent_ns: int = 0) -> None:  # noqa: ARG001
    TALLY.end(sent_ns)


class Rq(Peer):
    def open(self) -> None:
        self._queue = Queue(connection=Redis.from_url(self.url))

    def enqueue(self, jobs: int) -> None:
        for count in batches(jobs):
            self._queue.enqueue_many([Queue.prepare_data(TASK, (DATA,)) for _ in range(count)])

    def enqueue_one(self, sent_ns: int) -> None:
        self._queue.enqueue(TASK, DATA, sent_ns)

    def work(self, setting: int) -> None:
        self.open()
        worker = SimpleWorker([self._queue], connection=self._queue.connection)
        TALLY.wait_for_start()
        worker.work(logging_level="CRITICAL")


if __name__ == "__main__":
    main(Rq)
