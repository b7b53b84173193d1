"""For development: a process that ends when the application's code changes, and is replaced."""

import asyncio
import os
import sys
import time
import traceback
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from itertools import dropwhile

from penstock.model.errors import PenstockError
from penstock.model.failure import folded, is_application
from penstock.model.redact import redact
from penstock.worker.respawn import REPLACE_ME

LOOK_SECONDS = 0.5
STARTED_NS = time.time_ns()
"""When this process began: before it loaded the application."""
_OURS = "penstock"
_EDITED = -1


class FileWatch:
    """Remembers when the files of the application were written, and what is in other folders.

    A file written after `since` may have been loaded before: it counts as changed when first seen.
    """

    def __init__(self, also: Iterable[str] = (), since: int | None = None) -> None:
        self._also = tuple(also)
        self._since = since
        self._written: dict[str, int] = {}
        self.changed()

    def changed(self) -> str | None:
        """A file that was written or removed since it was first seen, if there is one."""
        for file in {*loaded_files(), *self._also, *self._written}:
            written = _state_of(file)
            before = _EDITED if self._is_late(file, written) else written
            if self._written.setdefault(file, before) != written:
                return file
        return None

    def _is_late(self, file: str, written: int) -> bool:
        # A clock that is ahead, that of a file server, would have the process replaced for ever.
        late = self._since is not None and self._since < written <= time.time_ns()
        return late and not os.path.isdir(file)

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
    sys.stderr.write(_shown(error))
    sys.stderr.write(f"penstock: {target} cannot be loaded; waiting for a change.\n")
    sys.stderr.flush()
    files = set(_files_of(error, target))
    folders = {os.path.dirname(os.path.abspath(file)) for file in {*files, *loaded_files()}}
    watch = FileWatch({*files, *folders, os.getcwd()}, STARTED_NS)
    while watch.changed() is None and parent_pid in (None, os.getppid()):
        time.sleep(LOOK_SECONDS)
    return REPLACE_ME


def _shown(error: BaseException) -> str:
    """The traceback from the first frame of the application on: who loads it is no help."""
    formatted = traceback.TracebackException.from_exception(error)
    if isinstance(error, PenstockError) and not _own_part(formatted.stack):
        return f"penstock: {error}\n"
    each: traceback.TracebackException | None = formatted
    while each is not None:
        each.stack[:] = _own_part(each.stack)
        each = each.__cause__ or each.__context__
    return folded(redact("".join(formatted.format())))


def _own_part(stack: traceback.StackSummary) -> list[traceback.FrameSummary]:
    return list(dropwhile(lambda frame: not is_application(frame.filename), stack))


def _files_of(error: BaseException, target: str) -> Iterator[str]:
    frames = traceback.extract_tb(error.__traceback__)
    yield from (frame.filename for frame in frames if is_application(frame.filename))
    if isinstance(error, SyntaxError | OSError) and isinstance(error.filename, str):
        yield error.filename
    try:
        spec = find_spec(target.partition(":")[0])
    except (ImportError, ValueError):
        return
    if spec is not None and spec.origin is not None:
        yield spec.origin


def _state_of(path: str) -> int:
    """When a file was written; of a folder, what code there is in it."""
    try:
        if os.path.isdir(path):
            return hash(frozenset(each.name for each in os.scandir(path) if _is_code(each)))
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _is_code(found: "os.DirEntry[str]") -> bool:
    return found.name.endswith(".py") or (found.is_dir() and found.name != "__pycache__")
