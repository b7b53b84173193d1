"""huey on SQLite, which waits for the disk as it does by default; the setting is its threads."""

import logging
import time

from harness import DATA, TALLY, Peer, main
from huey import SqliteHuey
from huey.consumer import Consumer

logging.disable(logging.CRITICAL)


def noop(data: str, sent_ns: int = 0) -> None:  # noqa: ARG001
    TALLY.end(sent_ns)


class Huey(Peer):
    def open(self) -> None:
        self._huey = SqliteHuey("bench", filename=self.url.removeprefix("sqlite:///"))
        self._task = self._huey.task()(noop)

    def enqueue(self, jobs: int) -> None:
        for _ in range(jobs):
            self._task(DATA)

    def enqueue_one(self, sent_ns: int) -> None:
        self._task(DATA, sent_ns)

    def work(self, setting: int) -> None:
        self.open()
        consumer = Consumer(self._huey, workers=setting, worker_type="thread", periodic=False)
        TALLY.wait_for_start()
        consumer.start()
        while True:
            time.sleep(1)


if __name__ == "__main__":
    main(Huey)
