"""How an installation is and what it has done, as its server sees it."""

from enum import StrEnum
from typing import Any

import msgspec

from penstock.client.remote.records import Document, record
from penstock.store.contract import QueueDepth, Window


class Condition(StrEnum):
    """How something is, the worst last."""

    HEALTHY = "healthy"
    DEGRADED = "degraded"
    UNHEALTHY = "unhealthy"


class Check(msgspec.Struct, frozen=True):
    """One thing that was looked at."""

    status: Condition
    detail: str
    figures: dict[str, Any] = {}


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """How everything is: as well as the worst of the checks."""

    at: int
    status: Condition
    checks: dict[str, Check]


class Stats(msgspec.Struct, frozen=True, kw_only=True):
    """What happened in a window of time: in all, per type and queue, and step by step."""

    at: int
    window_ms: int
    step_ms: int
    total: Window
    types: list[Window]
    queues: list[QueueDepth]
    dead_letters: int
    series: list[dict[str, Any]] = []
    slos: list[dict[str, Any]] = []


def health_of(document: Document) -> Health:
    """The health that a document tells."""
    return record(Health, document)


def stats_of(document: Document) -> Stats:
    """The figures that a document tells."""
    return record(Stats, document)
