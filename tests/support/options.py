"""A value for every option of a call, so that a new one is tested wherever options are said."""

import json
from datetime import UTC, datetime
from typing import Any

from penstock.model.job import OPTIONS
from penstock.model.options import (
    Choice,
    Document,
    Factor,
    Keep,
    Moment,
    Name,
    Option,
    Seconds,
    Text,
    Whole,
    Words,
)

_OF_KIND: dict[type[Option], Any] = {
    Name: "night",
    Text: "some-text",
    Whole: 3,
    Factor: 1.5,
    Keep: 25,
    Seconds: 60,
    Moment: datetime(2999, 1, 1, tzinfo=UTC),
    Choice: "forever",
    Words: ("vip", "eu"),
    Document: {"source": "form"},
}
UNTIL_ENQUEUED = frozenset({"delay", "expires_in", "key_window", "after"})
"""What becomes a time, an edge or a row of its own."""

SAMPLES: dict[str, Any] = {
    name: _OF_KIND[type(option)] for name, option in OPTIONS.items() if name != "after"
}
KEPT = {name: value for name, value in SAMPLES.items() if name not in UNTIL_ENQUEUED}
"""Those that a stored job has a column for."""

TEXTS = {name: f"the-{name}" for name, option in OPTIONS.items() if isinstance(option, Text)}


def typed(value: Any) -> str:
    """A value as a person types it."""
    if isinstance(value, dict):
        return json.dumps(value)
    return ",".join(value) if isinstance(value, tuple) else str(value)


def columns(job: object, names: Any) -> dict[str, Any]:
    """What a job holds for some options."""
    return {name: getattr(job, OPTIONS[name].field) for name in names}
