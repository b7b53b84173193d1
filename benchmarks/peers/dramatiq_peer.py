"""dramatiq on Redis; the setting is its threads. It has no bulk enqueue."""

import logging
import time

import dramatiq
from dramatiq.brokers.redis import RedisBroker
from harness import DATA, TALLY, Peer, main

logging.disable(logging.CRITICAL)


def noop(data: str, sent_ns: int = 0) -> None:  # noqa: ARG001
    TALLY.end(sent_ns)


class Dramatiq(Peer):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._broker = RedisBroker(url=url)
        dramatiq.set_broker(self._broker)
        self._actor = dramatiq.actor(noop)

    def enqueue(self, jobs: int) -> None:
        for _ in range(jobs):
            self._actor.send(DATA)

    def enqueue_one(self, sent_ns: int) -> None:
        self._actor.send(DATA, sent_ns)

    def work(self, setting: int) -> None:
        worker = dramatiq.Worker(self._broker, worker_threads=setting)
        TALLY.wait_for_start()
        worker.start()
        while True:
            time.sleep(1)


if __name__ == "__main__":
    main(Dramatiq)
