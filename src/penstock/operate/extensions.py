"""Asking the parts of extensions: what fails or hangs is left out, and takes nothing else along."""

import asyncio
from collections import defaultdict
from typing import TYPE_CHECKING, Any

import structlog

from penstock.app.extensions import loaded_part
from penstock.service import Seldom

if TYPE_CHECKING:
    from penstock.extension import Extension

log = structlog.get_logger("penstock.extensions")

SECONDS = 2.0
"""So long a part may take."""

_may_warn: defaultdict[str, Seldom] = defaultdict(Seldom)


async def read_part(extension: "Extension", name: str, part: Any, *given: Any) -> Any:
    """The answer of a part, or None if it raised or took too long; the log says so now and then."""
    try:
        async with asyncio.timeout(SECONDS):
            return await loaded_part(extension, part)(*given)
    except Exception as error:
        place = f"{extension.name}.{name}"
        if _may_warn[place]():
            told = str(error) or type(error).__name__
            log.warning("extension_failed", part=place, error=told)
        return None
