"""What every peer shares: the commands it answers, and the tally of its handlers.

`NAME_peer.py COMMAND URL [NUMBER]` with one of the commands

- `setup`: make what the system needs in an empty store;
- `enqueue`: that many jobs in the system's own best bulk way; prints jobs per second;
- `singles`: that many jobs one at a time with gaps between them;
- `in_a_row`: that many jobs one right after the other, by a coroutine and by a plain function;
  prints jobs per second of both, and null for what the system does not offer;
- `work`: print a line, wait for one, then work at that setting until killed, printing on the way
  how many handlers have ended, when the last one did, and how long each single job was on its way.

All of them print JSON, one document to a line. Times are those of CLOCK_MONOTONIC, which all
processes of a machine share.
"""

import asyncio
import inspect
import json
import os
import random
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

DATA = "x" * 89
BATCH = 1_000
GAPS_SECONDS = (0.02, 0.06)
REPORT_SECONDS = 0.02


class Tally:
    """Counts the jobs of this process; a handler calls it, a thread reports it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._done = 0
        self._last_ns = 0
        self._pickups: list[float] = []

    def end(self, sent_ns: int) -> None:
        """A handler ran; `sent_ns` is when its job was enqueued, or 0."""
        now = time.monotonic_ns()
        with self._lock:
            self._done += 1
            self._last_ns = now
            if sent_ns:
                self._pickups.append((now - sent_ns) / 1e6)

    def wait_for_start(self) -> None:
        """Say that the worker is about to run, and wait until it may."""
        say({"ready": True})
        sys.stdin.readline()
        threading.Thread(target=self._report, daemon=True).start()

    def _report(self) -> None:
        said = 0
        while True:
            time.sleep(REPORT_SECONDS)
            with self._lock:
                done, last_ns, pickups = self._done, self._last_ns, self._pickups
                self._pickups = []
            if done > said:
                said = done
                say({"done": done, "last_ns": last_ns, "pickups": pickups})


TALLY = Tally()


class Peer:
    """A system that is compared; `open`, `enqueue` and `enqueue_one` may be coroutines."""

    def __init__(self, url: str) -> None:
        self.url = url

    def setup(self) -> Any:
        """Make what the system needs in an empty store."""

    def open(self) -> Any:
        """Connect; not measured."""

    def enqueue(self, jobs: int) -> Any:
        """Enqueue jobs in bulk."""
        raise NotImplementedError

    def enqueue_one(self, sent_ns: int) -> Any:
        """Enqueue one job that carries the time of this call."""
        raise NotImplementedError

    def enqueue_one_plainly(self, sent_ns: int) -> None:
        """The same from a plain function, where `enqueue_one` is a coroutine."""
        raise NotImplementedError

    def work(self, setting: int) -> None:
        """Work until killed; calls `TALLY.wait_for_start` just before."""
        raise NotImplementedError


def say(document: Any) -> None:
    """Tell whoever started us, where nothing that a library prints can come between."""
    os.write(_told, (json.dumps(document) + "\n").encode())


_told = os.dup(1)
os.dup2(2, 1)


def batches(jobs: int, size: int = BATCH) -> Iterator[int]:
    """The sizes of the batches that make up so many jobs."""
    for start in range(0, jobs, size):
        yield min(size, jobs - start)


def main(peer_class: type[Peer]) -> None:
    command, url, *rest = sys.argv[1:]
    peer = peer_class(url)
    number = int(rest[0]) if rest else 0
    if command == "work":
        peer.work(number)
    elif command == "in_a_row":
        say([_by_coroutine(peer_class, url, number), _by_function(peer_class, url, number)])
    else:
        asyncio.run(_ask(peer, command, number))


async def _ask(peer: Peer, command: str, number: int) -> None:
    if command == "setup":
        await _ended(peer.setup())
        say(None)
        return
    await _ended(peer.open())
    if command == "enqueue":
        began = time.perf_counter()
        await _ended(peer.enqueue(number))
        say(number / (time.perf_counter() - began))
    else:
        for _ in range(number):
            await asyncio.sleep(random.uniform(*GAPS_SECONDS))
            await _ended(peer.enqueue_one(time.monotonic_ns()))
        say(number)


async def _ended(answer: Any) -> None:
    if inspect.isawaitable(answer):
        await answer


def _by_coroutine(peer_class: type[Peer], url: str, number: int) -> float | None:
    if not inspect.iscoroutinefunction(peer_class.enqueue_one):
        return None

    async def measure() -> float:
        peer = peer_class(url)
        await _ended(peer.open())
        await peer.enqueue_one(0)
        began = time.perf_counter()
        for _ in range(number):
            await peer.enqueue_one(0)
        return number / (time.perf_counter() - began)

    return asyncio.run(measure())


def _by_function(peer_class: type[Peer], url: str, number: int) -> float | None:
    peer = peer_class(url)
    enqueue = peer.enqueue_one
    if not inspect.iscoroutinefunction(enqueue):
        peer.open()
    elif peer_class.enqueue_one_plainly is Peer.enqueue_one_plainly:
        return None
    else:
        enqueue = peer.enqueue_one_plainly
    enqueue(0)
    began = time.perf_counter()
    for _ in range(number):
        enqueue(0)
    return number / (time.perf_counter() - began)
