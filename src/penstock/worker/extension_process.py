"""Processes that extensions bring: `python -m penstock.worker.extension_process SPEC`.

As with a worker, `-` has the specification read from the standard input.
"""

import asyncio
import os
import signal
import sys
from contextlib import suppress
from typing import Any

import msgspec
import structlog

from penstock.app.extensions import loaded_part
from penstock.app.penstock import Penstock
from penstock.extension import Extension, Process
from penstock.logs import configure_logs
from penstock.model.errors import InvalidOption, PenstockError
from penstock.worker import loop
from penstock.worker.reload import STARTED_NS, FileWatch, wait_for_repair
from penstock.worker.respawn import (
    BAD_SPEC,
    REPLACE_ME,
    KeptChild,
    exit_code_of,
    orphaned,
    spec_text,
    start,
)
from penstock.worker.target import app_of

log = structlog.get_logger("penstock.extension")

KILLING = 3
"""At so many signals, what hangs is killed."""


class ProcessSpec(msgspec.Struct, frozen=True, kw_only=True):
    """All that a process of an extension needs to know, passed to it as JSON."""

    name: str
    words: tuple[str, ...] = ()
    target: str | None = None
    url: str | None = None
    settings: dict[str, Any] = {}
    log_json: bool = False
    log_level: str = "info"
    reload: bool = False
    parent_pid: int | None = None


def wanted_processes(app: Penstock) -> list[Process]:
    """Those that run beside the workers, because an enabled extension has something to do."""
    app.extensions.enable_installed()
    return [
        process
        for extension in app.extensions
        for process in extension.processes
        if process.wanted is not None and loaded_part(extension, process.wanted)(app)
    ]


async def serve(spec: ProcessSpec) -> int:
    """Run it until a signal ends it; the exit code says whether to replace it."""
    app = app_of(spec.target, spec.url, spec.settings)
    app.extensions.enable_installed()
    extension, process = _find(app, spec.name)
    app.extensions.enable(extension)
    work = loaded_part(extension, process.run)
    async with app:
        loop.keep_loaded()
        task = asyncio.create_task(work(app, spec.words) if process.takes else work(app))
        return await _until_told(task, spec)


def _find(app: Penstock, name: str) -> tuple[Extension, Process]:
    for extension in app.extensions.known().values():
        for process in extension.processes:
            if process.name == name:
                return extension, process
    raise InvalidOption("process", name, "one that an extension brings")


async def _until_told(task: "asyncio.Task[None]", spec: ProcessSpec) -> int:
    """Let it run; told to stop, it finishes what it has begun."""
    running = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        running.add_signal_handler(number, _cancel_once(task))
    changed: list[str] = []
    beside = [asyncio.create_task(_cancel_when_orphaned(task, spec.parent_pid))]
    if spec.reload:
        beside.append(asyncio.create_task(_cancel_when_changed(task, changed)))
    log.info("process_started", process=spec.name)
    try:
        with suppress(asyncio.CancelledError):
            await task
    finally:
        for each in beside:
            each.cancel()
    log.info("process_stopped", process=spec.name)
    return REPLACE_ME if changed else 0


def _cancel_once(task: "asyncio.Task[None]") -> Any:
    """A second signal, to the whole group, must not cut off what the first has it finish."""

    def cancel() -> None:
        if not task.cancelling():
            task.cancel()

    return cancel


async def _cancel_when_orphaned(task: "asyncio.Task[None]", parent_pid: int | None) -> None:
    await orphaned(parent_pid)
    _cancel_once(task)()


async def _cancel_when_changed(task: "asyncio.Task[None]", changed: list[str]) -> None:
    changed.append(await FileWatch(since=STARTED_NS).change())
    _cancel_once(task)()


class KeptProcess(KeptChild):
    """One of an extension's processes."""

    stop_seconds = 40.0

    def __init__(self, spec: ProcessSpec) -> None:
        super().__init__(spec.name)
        self._spec = spec

    async def start_child(self, *, again: bool) -> asyncio.subprocess.Process:
        """Start it; its name stands in its arguments for whoever looks at the list of processes."""
        told = msgspec.structs.replace(self._spec, parent_pid=os.getpid())
        module = "penstock.worker.extension_process"
        return await start(module, msgspec.json.encode(told), self._spec.name)


class ProcessSupervisor:
    """Keeps a number of the same processes alive until it is told to stop."""

    def __init__(self, spec: ProcessSpec, processes: int) -> None:
        self._kept = [KeptProcess(spec) for _ in range(processes)]
        self._signals = 0

    async def run(self) -> int:
        """Supervise until stopped; the exit code for the shell."""
        running = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            running.add_signal_handler(number, self.stop)
        return max(await asyncio.gather(*(each.run() for each in self._kept)))

    def stop(self) -> None:
        """Have them finish what they do; the third call kills what hangs."""
        self._signals += 1
        for each in self._kept:
            if self._signals < KILLING:
                each.stop()
            else:
                each.kill()


def main() -> None:
    """Run what the first argument describes."""
    spec = msgspec.json.decode(spec_text(), type=ProcessSpec)
    configure_logs(json=spec.log_json, level=spec.log_level)
    try:
        code = loop.run(serve(spec))
    except PenstockError as error:
        code = exit_code_of(error)
        if code == BAD_SPEC and spec.reload:
            code = wait_for_repair(error, str(spec.target), spec.parent_pid)
        else:
            sys.stderr.write(f"penstock: {error}\n")
    except Exception as error:
        if not spec.reload:
            raise
        code = wait_for_repair(error, str(spec.target), spec.parent_pid)
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads that were left to themselves would keep a normal exit waiting for ever.
    os._exit(code)


if __name__ == "__main__":
    main()
