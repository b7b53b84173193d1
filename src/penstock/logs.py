"""Log lines for people in a terminal, JSON for machines."""

import logging
import sys
from typing import Any

import structlog

from penstock.model.redact import redact


def _redacted(_logger: Any, _method: str, event: Any) -> Any:
    """Errors of hooks and handlers pass the same gate on their way to a log."""
    for name in ("exception", "error"):
        if isinstance(event.get(name), str):
            event[name] = redact(event[name])
    return event


def configure_logs(*, json: bool = False, level: str = "info") -> None:
    """Write to standard error: readable in a terminal, one JSON object per line otherwise asked."""
    renderer: Any = (
        structlog.processors.JSONRenderer()
        if json
        else structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty())
    )
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            _redacted,
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(
            logging.getLevelNamesMapping().get(level.upper(), logging.INFO)
        ),
        # Each line in one write: worker processes share it, unbuffered in many containers.
        logger_factory=structlog.WriteLoggerFactory(sys.stderr),
        cache_logger_on_first_use=True,
    )
