"""Values as people type them: spans, times, lists of names."""

import re
from typing import TYPE_CHECKING, Any

import typer

from penstock.cli.root import Refused

if TYPE_CHECKING:
    from datetime import datetime

_SPAN = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|min|h|d)?")
_TYPED = {"ms": 1, "s": 1_000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def parse_span(text: str, option: str) -> int:
    """Milliseconds of `90`, `90s`, `15m`, `1h` or `7d`; a bare number is seconds."""
    found = _SPAN.fullmatch(text.strip())
    if found is None:
        raise Refused(
            f"Option {option!r} is {text!r}, but it must be a span such as 90s, 15m or 1h."
        )
    return int(float(found[1]) * _TYPED[found[2] or "s"])


def parse_time(text: str | None, option: str, zone: str) -> "datetime | None":
    """An ISO-8601 time; one without an offset is in the zone."""
    if text is None:
        return None
    from datetime import datetime

    from penstock.model.zone import find_zone

    try:
        found = datetime.fromisoformat(text.strip())
    except ValueError:
        raise Refused(
            f"Option {option!r} is {text!r}, but it must be a time such as 2026-11-15T03:28."
        ) from None
    return found if found.tzinfo is not None else found.replace(tzinfo=find_zone(zone))


def moment(text: str | None, option: str) -> int | None:
    """The same in milliseconds, as stores keep it; without an offset it is UTC."""
    from penstock.model.clock import milliseconds

    found = parse_time(text, option, "UTC")
    return None if found is None else milliseconds(found)


def name_list(*names: str, metavar: str, help: str, default: str | None = None) -> Any:  # noqa: A002
    """An option that takes names separated by commas, and may be repeated."""
    return typer.Option(
        *names,
        metavar=metavar,
        help=f"{help} Separated by commas, or repeated.",
        show_default=default or False,
        callback=_names,
    )


def _names(param: typer.CallbackParam, typed: list[str] | None) -> list[str] | None:
    if not typed:
        return None
    names = [name for text in typed for name in map(str.strip, text.split(",")) if name]
    if not names:
        raise Refused(
            f"Option {param.opts[0].lstrip('-')!r} is {','.join(typed)!r}, "
            "but it must name at least one, as in a,b."
        )
    return names
