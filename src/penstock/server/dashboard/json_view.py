"""A JSON document for reading: laid out, coloured, and long parts of it folded."""

import json
from collections.abc import Iterable
from typing import Any

from markupsafe import Markup, escape

from penstock.client.documents import decoded

UNFOLDED = 12
"""Parts with more entries than this are opened by a click."""

DEEPEST = 30
"""Parts further in than this stand on one line."""

INDENT = "  "

LONGEST = 50_000
"""Documents with more characters than this are shown in part, as they are."""


def json_view(document: Any) -> Markup:
    """A stored document, or a text that holds one."""
    text = document if isinstance(document, str) else json.dumps(document, default=str)
    if len(text) > LONGEST:
        more = Markup('<span class="word">… and {:,} more characters, which the API has</span>')
        return escape(text[:LONGEST]) + more.format(len(text) - LONGEST)
    try:
        return _value(decoded(document), 0)
    except RecursionError:
        return escape(document)


def _value(value: Any, depth: int) -> Markup:
    if depth > DEEPEST:
        return _part("word", value)
    if isinstance(value, dict):
        entries = (
            _part("key", key) + ": " + _value(each, depth + 1) for key, each in value.items()
        )
        return _container("{", "}", entries, len(value), "field", depth)
    if isinstance(value, list):
        entries = (_value(each, depth + 1) for each in value)
        return _container("[", "]", entries, len(value), "item", depth)
    kind = "text" if isinstance(value, str) else "number" if _is_number(value) else "word"
    return _part(kind, value)


def _container(
    first: str, last: str, entries: Iterable[Markup], size: int, noun: str, depth: int
) -> Markup:
    if not size:
        return Markup(first + last)
    between = Markup(",\n" + INDENT * (depth + 1))
    inside = Markup("\n{}{}\n{}{}").format(
        INDENT * (depth + 1), between.join(entries), INDENT * depth, last
    )
    if depth == 0 or size <= UNFOLDED:
        return Markup(first) + inside
    return Markup("<details><summary>{} {} {}s</summary>{}</details>").format(
        first, size, noun, inside
    )


def _part(kind: str, value: Any) -> Markup:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return Markup('<span class="{}">{}</span>').format(kind, text)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
