"""Retry-After: how long the other side of a failed call asked us to wait."""

import math
from collections.abc import Iterator
from datetime import timedelta


def retry_after_ms(exc: BaseException, now_ms: int) -> int | None:
    """Return how long the other side asked us to wait (Retry-After), if it did."""
    waits = [wait for link in _links(exc) if (wait := _own_retry_after(link, now_ms)) is not None]
    return max(waits, default=None)


def attribute(holder: object, name: str) -> object:
    """Read an attribute of a stranger: None where it is missing or its property raises."""
    try:
        return getattr(holder, name, None)
    except Exception:
        return None


def _links(exc: BaseException) -> Iterator[BaseException]:
    """Walk the exception, its group's members and what each was raised from, once each."""
    seen: set[int] = set()
    waiting: list[BaseException | None] = [exc]
    while waiting:
        link = waiting.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        yield link
        waiting.append(link.__cause__)
        if isinstance(link, BaseExceptionGroup):
            waiting.extend(link.exceptions)


def _own_retry_after(exc: BaseException, now_ms: int) -> int | None:
    for value in (
        attribute(exc, "retry_after"),
        _header(attribute(attribute(exc, "response"), "headers")),
        _header(attribute(exc, "headers")),
    ):
        wait = _wait_ms(value, now_ms)
        if wait is not None:
            return wait
    return None


def _header(headers: object) -> object:
    get = attribute(headers, "get")
    if not callable(get):
        return None
    try:
        return get("Retry-After") or get("retry-after")
    except Exception:
        return None


def _wait_ms(value: object, now_ms: int) -> int | None:
    if isinstance(value, timedelta):
        value = value.total_seconds()
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return _until_date_ms(str(value), now_ms)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return max(0, math.ceil(value * 1000))


def _until_date_ms(text: str, now_ms: int) -> int | None:
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(text)
        return max(0, math.ceil(moment.timestamp() * 1000) - now_ms)
    except (ValueError, OverflowError, OSError):
        return None
