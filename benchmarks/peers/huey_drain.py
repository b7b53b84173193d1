"""Drain no-op tasks with one huey consumer on SQLite: `huey_drain.py FILE TASKS THREADS FSYNC`.

FSYNC is `default`, `on` or `off`. Prints the tasks per second as JSON.
"""

import json
import logging
import sys
import time

from huey import SqliteHuey
from huey.consumer import Consumer

FSYNC = {"default": None, "on": True, "off": False}
DATA = "x" * 89


def main() -> None:
    path, tasks, threads, fsync = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    logging.disable(logging.CRITICAL)
    huey = SqliteHuey("bench", filename=path, fsync=FSYNC[fsync])
    ended: list[float] = []

    @huey.task()
    def noop(data: str) -> None:
        ended.append(time.perf_counter())

    with huey.storage.db(commit=True):  # one transaction: filling is not measured
        for _ in range(tasks):
            noop(DATA)
    consumer = Consumer(huey, workers=threads, worker_type="thread", periodic=False)
    began = time.perf_counter()
    consumer.start()
    while len(ended) < tasks:
        time.sleep(0.002)
    taken = max(ended) - began
    consumer.stop()
    print(json.dumps({"rate": tasks / taken}))


if __name__ == "__main__":
    main()
