"""A server in a process of its own: `python -m penstock.server.process SPEC SOCKET`.

As with a worker, `-` has the specification read from the standard input.
"""

import asyncio
import socket
import sys
import webbrowser

import msgspec
import structlog

from penstock.logs import configure_logs
from penstock.model.errors import PenstockError
from penstock.model.redact import without_password
from penstock.server.serve import ServerSpec, Serving
from penstock.worker import loop
from penstock.worker.reload import STARTED_NS, FileWatch, wait_for_repair
from penstock.worker.respawn import BAD_SPEC, REPLACE_ME, exit_code_of, orphaned, spec_text
from penstock.worker.target import app_of

log = structlog.get_logger("penstock.server")


async def serve(spec: ServerSpec, taken: socket.socket) -> int:
    """Serve until a signal ends it, or whoever started it is gone; the exit code."""
    app = app_of(spec.target, spec.url, spec.settings)
    serving = Serving(app, spec.bind, taken, upkeep=spec.upkeep)
    beside = [
        _greet(serving, spec, without_password(app.settings.url)),
        _stop_when_orphaned(serving, spec.parent_pid),
    ]
    changed: list[str] = []
    if spec.reload:
        beside.append(_stop_when_changed(serving, changed))
    tasks = [asyncio.create_task(each) for each in beside]
    try:
        await serving.run()
    finally:
        for task in tasks:
            task.cancel()
        for ended in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(ended, Exception):
                log.warning("greeting_failed", error=str(ended))
    return REPLACE_ME if changed else 0


async def _greet(serving: Serving, spec: ServerSpec, store: str) -> None:
    await serving.ready.wait()
    if spec.greeting is not None:
        sys.stdout.write(f"{spec.greeting.format(address=serving.address, store=store)}\n")
        sys.stdout.flush()
    if spec.opens_browser:
        await asyncio.to_thread(webbrowser.open, serving.address)


async def _stop_when_orphaned(serving: Serving, parent_pid: int | None) -> None:
    await orphaned(parent_pid)
    serving.stop()


async def _stop_when_changed(serving: Serving, changed: list[str]) -> None:
    changed.append(await FileWatch(since=STARTED_NS).change())
    serving.stop()


def run(spec: ServerSpec, taken: socket.socket) -> int:
    """Run a server on a socket until it ends; the exit code says whether to try again."""
    configure_logs(json=spec.log_json, level=spec.log_level)
    try:
        return loop.run(serve(spec, taken))
    except PenstockError as error:
        code = exit_code_of(error)
        if code == BAD_SPEC and spec.reload:
            return wait_for_repair(error, str(spec.target), spec.parent_pid)
        sys.stderr.write(f"penstock: {error}\n")
        return code
    except Exception as error:
        if not spec.reload:
            raise
        return wait_for_repair(error, str(spec.target), spec.parent_pid)


def main() -> None:
    """Run what the first argument describes, on the socket whose number is the second."""
    spec = msgspec.json.decode(spec_text(), type=ServerSpec)
    sys.exit(run(spec, socket.socket(fileno=int(sys.argv[2]))))


if __name__ == "__main__":
    main()
