"""Log lines for people in a terminal, JSON for machines."""

import logging
import os
import re
import sys
from typing import Any

import structlog

from penstock.model.redact import redact

_FILE = re.compile(r'^(\s+File )("[^"]*", line \d+)', re.MULTILINE)
_FOLDED = re.compile(r"^  … .*$", re.MULTILINE)
_ERROR = re.compile(r"^(?!Traceback |During |The above |In the job's )\S.*$", re.MULTILINE)
_shows_tracebacks: bool | None = None


def shows_tracebacks() -> bool:
    """Whether a person reads the lines, and is shown tracebacks below them."""
    return sys.stderr.isatty() if _shows_tracebacks is None else _shows_tracebacks


def configure_logs(
    *, json: bool = False, level: str = "info", tracebacks: bool | None = None
) -> None:
    """Write to standard error: readable in a terminal, one JSON object per line if asked for.

    Tracebacks are shown in a terminal, unless `tracebacks` says otherwise; never as JSON.
    """
    global _shows_tracebacks
    terminal = sys.stderr.isatty()
    _shows_tracebacks = not json and (terminal if tracebacks is None else tracebacks)
    coloured = terminal and not os.environ.get("NO_COLOR")
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if json
        else structlog.dev.ConsoleRenderer(colors=coloured, sort_keys=False)
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="%H:%M:%S", utc=False)
            if terminal and not json
            else structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _redacted,
            *([_without_worker] if terminal and not json else []),
            *([_painted] if coloured and not json else []),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping().get(level.upper(), logging.INFO)
        ),
        # Each line in one write: worker processes share it, unbuffered in many containers.
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )


def _redacted(_logger: Any, _method: str, event: Any) -> Any:
    """Errors of hooks and handlers pass the same gate on their way to a log."""
    for name in ("exception", "error"):
        if isinstance(event.get(name), str):
            event[name] = redact(event[name])
    return event


def _without_worker(_logger: Any, _method: str, event: Any) -> Any:
    """In a terminal, lines about jobs need not say which worker it is: it is this one."""
    if "job_id" in event:
        event.pop("worker_id", None)
    return event


def _painted(_logger: Any, _method: str, event: Any) -> Any:
    """Have the error and the places of a traceback stand out."""
    stack = event.get("exception")
    if isinstance(stack, str):
        stack = _ERROR.sub("\033[1;31m\\g<0>\033[0m", stack)
        stack = _FILE.sub("\\1\033[36m\\2\033[0m", stack)
        event["exception"] = _FOLDED.sub("\033[2m\\g<0>\033[0m", stack)
    return event
