"""What handlers say through `logging`: it is kept with the job and shown on the console."""

import logging
import threading
from collections.abc import Callable, Collection, Iterable
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import structlog

from penstock.model.failure import folded, is_library
from penstock.model.redact import redact

if TYPE_CHECKING:
    from penstock.app.context import Context
    from penstock.app.job_type import JobType
    from penstock.model.job import Lease
    from penstock.worker.running import Running

OFF = "off"
_OURS = "penstock"

Tell = Callable[[str, str, str | None], None]
"""Takes a level, a text, and the name of the logger if nobody else shows the line."""

running_here: ContextVar["Running | None"] = ContextVar("running", default=None)
"""The execution that the current code belongs to."""


class HandlerLog(logging.Handler):
    """Passes on what the application logs from `level` on, and warnings of libraries.

    A program that has not configured `logging` gets its lines on the console, too; of one that
    has, neither levels nor handlers are touched.
    """

    def __init__(self, level: str, types: "Iterable[JobType[..., ..., Any]]", tell: Tell) -> None:
        self._off = level == OFF
        super().__init__(logging.NOTSET if self._off else level.upper())
        self._packages = packages_of(types)
        self._tell = tell
        self.level_before: int | None = None
        """The root's level before the first of those that show lines; None if this one does not."""
        self._here = threading.local()

    def install(self) -> None:
        """Listen to everything that is logged in this process."""
        root = logging.getLogger()
        if self._off:
            return
        if all(isinstance(each, HandlerLog) for each in root.handlers):
            first = next(iter(_showing()), None)
            self.level_before = root.level if first is None else first.level_before
        root.addHandler(self)
        _set_level()

    def remove(self) -> None:
        """Leave `logging` as it was found."""
        root = logging.getLogger()
        root.removeHandler(self)
        if self.level_before is not None and not _showing():
            root.setLevel(self.level_before)
        self.level_before = None
        _set_level()

    def handle(self, record: logging.LogRecord) -> bool:
        """Pass a line on without the lock that handlers have.

        Whoever waits for it may hold a lock of ours: an object freed there logs in its `__del__`.
        """
        passed = self.filter(record)
        if passed:
            self.emit(record)
        return passed

    def emit(self, record: logging.LogRecord) -> None:
        """Pass a line on; one that cannot be written is reported like any handler's."""
        if record.levelno < logging.WARNING and not self._is_of_application(record):
            return
        if getattr(self._here, "busy", False):
            return  # said by a structlog that writes through `logging`
        self._here.busy = True
        try:
            shows = self in _showing()[:1] and not _is_shown(record)
            self._tell(_level_of(record), _text_of(record), record.name if shows else None)
        except Exception:
            self.handleError(record)
        finally:
            self._here.busy = False

    def _is_of_application(self, record: logging.LogRecord) -> bool:
        name = record.name.partition(".")[0]
        if name in self._packages:
            return True
        return name != _OURS and not is_library(record.pathname)


def _showing() -> list[HandlerLog]:
    """Those of a process that has not configured `logging`; the first of them shows its lines."""
    logs = (each for each in logging.getLogger().handlers if isinstance(each, HandlerLog))
    return [each for each in logs if each.level_before is not None]


def _set_level() -> None:
    if showing := _showing():
        logging.getLogger().setLevel(min(each.level for each in showing))


def _is_shown(record: logging.LogRecord) -> bool:
    """Whether a handler of the program shows a line, at its logger or one above."""
    logger: logging.Logger | None = logging.getLogger(record.name)
    while logger is not None:
        for each in logger.handlers:
            silent = isinstance(each, HandlerLog | logging.NullHandler)
            if not silent and record.levelno >= each.level:
                return True
        logger = logger.parent if logger.propagate else None
    return False


def packages_of(types: "Iterable[JobType[..., ..., Any]]") -> Collection[str]:
    """The packages that hold handlers: they are the application, though it may be installed."""
    found = {str(type_.function.__module__).partition(".")[0] for type_ in types}
    return found - {_OURS}


def keep_with_job(executor: object, context_of: "Callable[[Running], Context]") -> Tell:
    """Keep lines with the job whose handler says them, if the executor runs it.

    Of lines that belong to no job, warnings are shown, as Python does by itself.
    """

    def tell(level: str, text: str, logger: str | None) -> None:
        running = running_here.get()
        if running is None:
            show(logger if level in ("warning", "error") else None, level, text, None)
            return
        if running.executor is executor:
            context_of(running).log(text, level)
        show(logger, level, text, running.lease)

    return tell


def show(logger: str | None, level: str, text: str, lease: "Lease | None") -> None:
    """Show a line on the console, with the job that it is about; without a logger, not at all."""
    if logger is None:
        return
    about = {} if lease is None else {"job_type": lease.type, "job_id": lease.id}
    shown = structlog.get_logger(logger)
    getattr(shown, level)(redact(text), logger=logger, **about)


def _level_of(record: logging.LogRecord) -> str:
    if record.levelno >= logging.ERROR:
        return "error"
    if record.levelno >= logging.WARNING:
        return "warning"
    return "info" if record.levelno >= logging.INFO else "debug"


def _text_of(record: logging.LogRecord) -> str:
    text = record.getMessage()
    if record.exc_info and record.exc_info[0] is not None:
        stack = logging.Formatter().formatException(record.exc_info)
        text = f"{text}\n{folded(stack)}"
    return text
