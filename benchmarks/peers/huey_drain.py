"""Drain no-op tasks with one huey consumer on SQLite: `huey_drain.py FILE TASKS THREADS FSYNC`.

FSYNC is `default` or `off`. Prints the tasks per second as JSON.
"""

import json
import logging
import sys
import time

from huey import SqliteHuey
from huey.consumer import Consumer

FSYNC = {"default": None, "off": False}
DATA = "x" * 89

ended: list[float] = []


def noop(data: str) -> None:  # noqa: ARG001
    ended.append(time.perf_counter())


def fill(path: str, tasks: int) -> None:
    """Not measured, so it need not wait for the disk."""
    huey = SqliteHuey("bench", filename=path, fsync=False)
    task = huey.task()(noop)
    for _ in range(tasks):
        task(DATA)
    huey.storage.close()


def drain(path: str, tasks: int, threads: int, fsync: bool | None) -> float:
    huey = SqliteHuey("bench", filename=path, fsync=fsync)
    huey.task()(noop)
    consumer = Consumer(huey, workers=threads, worker_type="thread", periodic=False)
    began = time.perf_counter()
    consumer.start()
    while len(ended) < tasks:
        time.sleep(0.002)
    consumer.stop()
    return max(ended) - began


def main() -> None:
    path, tasks, threads, fsync = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
    logging.disable(logging.CRITICAL)
    fill(path, tasks)
    print(json.dumps(tasks / drain(path, tasks, threads, FSYNC[fsync])))


if __name__ == "__main__":
    main()
