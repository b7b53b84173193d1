"""Counts what makes an addition dear: `python tools/count_house.py [--json]`.

How many definitions one operation has, how many files one column is named in and one request
passes, and how many files there are. The figures warn; whether something is found decides.
"""

import ast
import asyncio
import json
import re
import statistics
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from types import FrameType
from typing import Any

import httpx

from penstock import Penstock, Settings
from penstock.server.app import create_server

SOURCE = Path(__file__).parents[1] / "src" / "penstock"
LATER = ("events", "apps")
COLUMN = "order_key"
OPERATION = {"pause", "pause_queue", "_pause"}
OTHER_PAUSES = ("schedules", "bulk", "transfer", "claim")
"""Files whose `pause` is of something else than a queue."""


def shipped() -> list[Path]:
    """The Python files of the core."""
    return [p for p in SOURCE.rglob("*.py") if p.relative_to(SOURCE).parts[0] not in LATER]


def definitions() -> list[str]:
    """Every function, route, command, statement and script written to pause a queue."""
    found: list[str] = []
    for path in shipped():
        if path.stem in OTHER_PAUSES:
            continue
        found.extend(
            f"{path.relative_to(SOURCE)}:{node.lineno}"
            for node in ast.walk(ast.parse(path.read_text("utf-8")))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name in OPERATION
        )
    found.extend(
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.sql")
        if re.search(r"^-- name: pause$", path.read_text("utf-8"), re.MULTILINE)
    )
    found += [str(path.relative_to(SOURCE)) for path in SOURCE.rglob("pause.lua")]
    return sorted(found)


def named_in() -> list[str]:
    """The files that name one column of a job."""
    kinds = ("*.py", "*.sql", "*.lua", "*.html")
    return sorted(
        str(path.relative_to(SOURCE))
        for kind in kinds
        for path in SOURCE.rglob(kind)
        if re.search(rf"\b{COLUMN}\b", path.read_text("utf-8"))
    )


inside = ContextVar("inside", default=False)
"""Whether this is what is watched, and not a service that runs beside it."""


def in_main_thread() -> bool:
    """Whether this is the thread of the event loop."""
    return threading.current_thread() is threading.main_thread()


class Watch:
    """Collects the files whose functions are called, in threads that began while it watched too."""

    def __init__(self) -> None:
        self._files: set[str] = set()
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, _: object) -> None:
        ours = frame.f_code.co_filename.startswith(str(SOURCE))
        if ours and event == "call" and (inside.get() or not in_main_thread()):
            self._files.add(frame.f_code.co_filename.removeprefix(f"{SOURCE}/"))

    @contextmanager
    def passed(self) -> Iterator[set[str]]:
        """The files that are passed inside."""
        self._files = files = set[str]()
        token = inside.set(True)
        yield files
        inside.reset(token)
        self._files = set()


async def walks() -> dict[str, list[str]]:
    """The files that one enqueue and one look at a job's page pass."""
    watch = Watch()
    with tempfile.TemporaryDirectory() as folder:
        app = Penstock(settings=Settings(url=f"sqlite:///{folder}/work.db"))

        @app.job
        async def add(a: int, b: int) -> int:
            return a + b

        async with app:
            await add.enqueue(1, 2)
            with watch.passed() as enqueued:
                handle = await add.enqueue(2, 3)
            server = create_server(app, trusts_callers=True)
            transport = httpx.ASGITransport(server)
            async with (
                server.router.lifespan_context(server),
                httpx.AsyncClient(transport=transport, base_url="http://localhost") as browser,
            ):
                (await browser.get(f"/jobs/{handle.id}")).raise_for_status()
                with watch.passed() as shown:
                    (await browser.get(f"/jobs/{handle.id}")).raise_for_status()
    return {"enqueue": sorted(enqueued), "job page": sorted(shown)}


def counted() -> dict[str, Any]:
    """All figures, and what they are made of."""
    lengths = [len(path.read_text("utf-8").splitlines()) for path in shipped()]
    found = asyncio.run(walks())
    return {
        "definitions of pausing a queue": definitions(),
        f"files that name {COLUMN}": named_in(),
        "files that an enqueue passes on SQLite": found["enqueue"],
        "files that a job's page passes": found["job page"],
        "Python files": len(lengths),
        "median length": int(statistics.median(lengths)),
        "longest file": max(lengths),
    }


if __name__ == "__main__":
    figures = counted()
    if "--json" in sys.argv:
        print(json.dumps(figures, indent=2))
    else:
        for name, value in figures.items():
            print(f"{len(value) if isinstance(value, list) else value:>6}  {name}")
