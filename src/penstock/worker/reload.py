"""For development: a process that ends when the application's code changes, and is replaced."""

import asyncio
import os
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from importlib.util import find_spec

from penstock.model.failure import is_application
from penstock.model.redact import redact
from penstock.worker.respawn import REPLACE_ME

LOOK_SECONDS = 0.5
_OURS = "penstock"


class FileWatch:
    """Remembers when the files of the application were written."""

    def __init__(self, also: Iterable[str] = ()) -> None:
        self._also = tuple(also)
        self._written: dict[str, int] = {}
        self.changed()

    def changed(self) -> str | None:
        """A file that was written or removed since it was first seen, if there is one."""
        for file in {*loaded_files(), *self._also, *self._written}:
            written = _written_at(file)
            if self._written.setdefault(file, written) != written:
                return file
        return None

    async def change(self) -> str:
        """Wait for a change; the file."""
        while (file := self.changed()) is None:  # noqa: ASYNC110 - nothing rings
            await asyncio.sleep(LOOK_SECONDS)
        return file


def loaded_files() -> Iterator[str]:
    """The source files of all modules that are neither ours nor a library's."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        ours = name.partition(".")[0] == _OURS
        if isinstance(file, str) and file.endswith(".py") and not ours and is_application(file):
            yield file


def wait_for_repair(error: BaseException, target: str, parent_pid: int | None) -> int:
    """Show why the application cannot be loaded, and return when one of its files has changed.

    Return, too, when whoever started this process is gone; the exit code has it replaced.
    """
    sys.stderr.write(redact("".join(traceback.format_exception(error))))
    sys.stderr.write(f"penstock: {target} cannot be loaded; waiting for a change.\n")
    sys.stderr.flush()
    watch = FileWatch(_files_of(error, target))
    while watch.changed() is None and parent_pid in (None, os.getppid()):
        time.sleep(LOOK_SECONDS)
    return REPLACE_ME


def _files_of(error: BaseException, target: str) -> Iterator[str]:
    yield from (frame.filename for frame in traceback.extract_tb(error.__traceback__))
    if isinstance(error, SyntaxError) and error.filename:
        yield error.filename
    try:
        spec = find_spec(target.partition(":")[0])
    except (ImportError, ValueError):
        return
    if spec is not None and spec.origin is not None:
        yield spec.origin


def _written_at(file: str) -> int:
    try:
        return os.stat(file).st_mtime_ns
    except OSError:
        return 0
