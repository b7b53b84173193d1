"""celery on Redis without results; the setting is its threads, 0 being its solo pool."""

import logging

from celery import Celery
from harness import DATA, TALLY, Peer, main

logging.disable(logging.CRITICAL)

PREFETCH = 100


def noop(data: str, sent_ns: int = 0) -> None:  # noqa: ARG001
    TALLY.end(sent_ns)


class CeleryPeer(Peer):
    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._app = Celery("bench", broker=url)
        self._app.conf.update(
            task_ignore_result=True,
            worker_prefetch_multiplier=PREFETCH,
            worker_send_task_events=False,
            worker_redirect_stdouts=False,
            broker_connection_retry_on_startup=True,
        )
        self._task = self._app.task(name="noop")(noop)

    def enqueue(self, jobs: int) -> None:
        with self._app.producer_pool.acquire(block=True) as producer:
            for _ in range(jobs):
                self._task.apply_async((DATA,), producer=producer)

    def enqueue_one(self, sent_ns: int) -> None:
        self._task.apply_async((DATA, sent_ns))

    def work(self, setting: int) -> None:
        pool = ["--pool=threads", f"--concurrency={setting}"] if setting else ["--pool=solo"]
        alone = ["--without-gossip", "--without-mingle", "--without-heartbeat"]
        TALLY.wait_for_start()
        self._app.worker_main(["worker", "--loglevel=CRITICAL", *pool, *alone])


if __name__ == "__main__":
    main(CeleryPeer)
