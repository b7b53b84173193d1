"""A worker in a process of its own: `python -m penstock.worker.process SPEC`.

A `-` in place of the specification has it read from the standard input: everybody on a machine
sees the arguments of a process, and the URL of a store may hold a password.
"""

import asyncio
import os
import signal
import sys
from pathlib import Path
from typing import Any

import msgspec
import structlog

from penstock.logs import configure_logs
from penstock.model.errors import PenstockError
from penstock.worker import loop
from penstock.worker.health import kept_fresh, refresh
from penstock.worker.reload import STARTED_NS, FileWatch, wait_for_repair
from penstock.worker.respawn import (
    BAD_SPEC,
    REPLACE_ME,
    WORTH_ANOTHER_TRY,
    exit_code_of,
    orphaned,
    spec_text,
)
from penstock.worker.target import load_app
from penstock.worker.worker import Worker

log = structlog.get_logger("penstock.worker")

AT_ONCE = signal.SIGUSR2


class WorkerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """All a worker process needs to know, passed to it as JSON."""

    target: str
    url: str | None = None
    owner: str | None = None
    name: str | None = None
    queues: tuple[str, ...] | None = None
    types: tuple[str, ...] | None = None
    concurrency: int | None = None
    max_priority: int | None = None
    burst: bool = False
    log_json: bool = False
    log_level: str = "info"
    log_tracebacks: bool | None = None
    reload: bool = False
    parent_pid: int | None = None
    health: str | None = None
    """The folder of a supervisor's health files; for a worker process, its own file in there."""
    settings: dict[str, Any] = {}


async def serve(spec: WorkerSpec) -> int:
    """Run one worker until a signal ends it; the exit code says whether to replace it."""
    app = load_app(spec.target, spec.url)
    app.settings = app.settings.replace(**spec.settings)
    worker = Worker(
        app,
        queues=spec.queues,
        types=spec.types,
        concurrency=spec.concurrency,
        max_priority=spec.max_priority,
        name=spec.name,
        owner=spec.owner,
        burst=spec.burst,
    )
    worker.when_blocked(_end_blocked_process)
    # A process manager may signal the whole group: then a supervised worker hears twice, from it
    # and from its supervisor, and must still drain. Only the supervisor says "at once".
    stop = worker.stop if spec.parent_pid is None else worker.drain
    running = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        running.add_signal_handler(number, stop)
    running.add_signal_handler(AT_ONCE, worker.end)
    beside = [asyncio.create_task(_drain_when_orphaned(worker, spec.parent_pid))]
    if spec.reload:
        beside.append(asyncio.create_task(_drain_when_changed(worker)))
    with kept_fresh(spec.health, worker.silent_seconds):
        await worker.run()
    for task in beside:
        task.cancel()
    return REPLACE_ME if worker.recycling.chosen else 0


def _end_blocked_process() -> None:
    """No handler is within its time and the event loop is stuck: only a new process helps."""
    sys.stderr.write("penstock: a handler blocks the event loop for good; this process ends.\n")
    os._exit(1)


async def _drain_when_orphaned(worker: Worker, parent_pid: int | None) -> None:
    """A worker whose supervisor is gone drains: nobody would replace or stop it any more."""
    await orphaned(parent_pid)
    worker.drain()


async def _drain_when_changed(worker: Worker) -> None:
    """Finish what runs, then have this process replaced by one with the new code."""
    file = await FileWatch(since=STARTED_NS).change()
    log.info("worker_reloads", worker_id=worker.owner, changed=file)
    worker.recycling.chosen = f"{file} has changed"
    worker.drain()


def run(spec: WorkerSpec) -> int:
    """Run a worker until it ends."""
    configure_logs(json=spec.log_json, level=spec.log_level, tracebacks=spec.log_tracebacks)
    return loop.run(serve(spec))


def main() -> None:
    """Run what the first argument describes."""
    spec = msgspec.json.decode(spec_text(), type=WorkerSpec)
    try:
        code = run(spec)
    except PenstockError as error:
        code = exit_code_of(error)
        if code == WORTH_ANOTHER_TRY and spec.health is not None:
            refresh(Path(spec.health))  # the store is away, and this process has asked for it
        if code == BAD_SPEC and spec.reload:
            code = wait_for_repair(error, spec.target, spec.parent_pid)
        else:
            sys.stderr.write(f"penstock: {error}\n")
    except Exception as error:
        if not spec.reload:
            raise
        code = wait_for_repair(error, spec.target, spec.parent_pid)
    sys.stdout.flush()
    sys.stderr.flush()
    # Abandoned threads would keep a normal exit waiting for ever.
    os._exit(code)


if __name__ == "__main__":
    main()
