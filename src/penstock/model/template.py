"""Placeholders in a schedule's payload: `{{ tick.date }}` in any text of it.

A text that is nothing but a placeholder takes the value's own type: `"{{ run }}"` becomes `7`.
Four braces stand for two: `"{{{{ name }}}}"` becomes `"{{ name }}"`.
"""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import MsgspecError
from msgspec.json import decode, encode

from penstock.model.clock import iso
from penstock.model.refused import InvalidSchedule
from penstock.model.schedule import Schedule
from penstock.model.zone import aware, find_zone

NAMES = ("tick", "tick.date", "tick.local", "tick.ms", "run", "name", "previous")
_TOKEN = re.compile(r"\{\{\{\{|\}\}\}\}|\{\{\s*([^{}]*?)\s*\}\}")
_BRACES = "{{"


def render(schedule: Schedule, tick: int, run: int, previous: int | None) -> str:
    """The payload of one tick's job."""
    if _BRACES not in schedule.payload and "\\u" not in schedule.payload:
        return schedule.payload
    try:
        template = decode(schedule.payload)
    except MsgspecError as error:
        raise InvalidSchedule("payload", schedule.payload, f"valid JSON ({error})") from error
    return encode(_filled(template, values_of(schedule, tick, run, previous))).decode()


def values_of(schedule: Schedule, tick: int, run: int, previous: int | None) -> dict[str, Any]:
    """What the placeholders stand for at one tick."""
    local = aware(tick, find_zone(schedule.zone))
    return {
        "tick": iso(tick),
        "tick.date": local.date().isoformat(),
        "tick.local": local.isoformat(timespec="seconds"),
        "tick.ms": tick,
        "run": run,
        "name": schedule.name,
        "previous": None if previous is None else iso(previous),
    }


def _filled(template: Any, values: Mapping[str, Any]) -> Any:
    if isinstance(template, str):
        return _filled_text(template, values)
    if isinstance(template, dict):
        return {name: _filled(value, values) for name, value in template.items()}
    if isinstance(template, list):
        return [_filled(value, values) for value in template]
    return template


def _filled_text(text: str, values: Mapping[str, Any]) -> Any:
    whole = _TOKEN.fullmatch(text)
    if whole is not None and whole[1] is not None:
        return _value(whole, values)
    return _TOKEN.sub(lambda found: _text(found, values), text)


def _text(found: re.Match[str], values: Mapping[str, Any]) -> str:
    if found[1] is None:
        return found[0][:2]
    value = _value(found, values)
    return "" if value is None else str(value)


def _value(found: re.Match[str], values: Mapping[str, Any]) -> Any:
    if found[1] not in values:
        known = ", ".join(NAMES)
        raise InvalidSchedule(
            "placeholder", found[0], f"one of {known} (four braces stand for two that stay)"
        )
    return values[found[1]]
