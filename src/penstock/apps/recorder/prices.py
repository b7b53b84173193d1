"""What models cost: US dollars per million tokens, by the beginning of a model's name."""

from functools import cache
from types import MappingProxyType
from typing import NamedTuple

MILLION = 1_000_000


class Price(NamedTuple):
    """Dollars per million tokens; what is written to a cache for an hour costs twice the input."""

    input: float
    output: float
    cache_write: float
    cache_read: float


def _anthropic(given: float, output: float) -> Price:
    return Price(given, output, given * 1.25, given * 0.1)


def _cached(given: float, output: float, cached: float) -> Price:
    return Price(given, output, given, cached)


PRICES = MappingProxyType(
    {
        "claude-opus-4-5": _anthropic(5, 25),
        "claude-opus-4-6": _anthropic(5, 25),
        "claude-opus-4-7": _anthropic(5, 25),
        "claude-opus-4": _anthropic(15, 75),
        "claude-3-opus": _anthropic(15, 75),
        "claude-sonnet": _anthropic(3, 15),
        "claude-3-7-sonnet": _anthropic(3, 15),
        "claude-3-5-sonnet": _anthropic(3, 15),
        "claude-haiku-4": _anthropic(1, 5),
        "claude-3-5-haiku": _anthropic(0.8, 4),
        "claude-3-haiku": _anthropic(0.25, 1.25),
        "gpt-5-nano": _cached(0.05, 0.4, 0.005),
        "gpt-5-mini": _cached(0.25, 2, 0.025),
        "gpt-5": _cached(1.25, 10, 0.125),
        "gpt-4.1-nano": _cached(0.1, 0.4, 0.025),
        "gpt-4.1-mini": _cached(0.4, 1.6, 0.1),
        "gpt-4.1": _cached(2, 8, 0.5),
        "gpt-4o-mini": _cached(0.15, 0.6, 0.075),
        "gpt-4o": _cached(2.5, 10, 1.25),
        "o3": _cached(2, 8, 0.5),
        "o4-mini": _cached(1.1, 4.4, 0.275),
        "gemini-3-pro": _cached(2, 12, 0.2),
        "gemini-2.5-pro": _cached(1.25, 10, 0.125),
        "gemini-2.5-flash-lite": _cached(0.1, 0.4, 0.01),
        "gemini-2.5-flash": _cached(0.3, 2.5, 0.03),
    }
)
"""List prices of 2026; the longest beginning of a name that fits holds."""


@cache
def price_of(model: str) -> Price | None:
    """The price of a model, whatever its provider and date add to its name; None if unknown."""
    name = model.lower().rpartition("/")[2]
    for vendor in ("anthropic.", "us.anthropic.", "eu.anthropic.", "global.anthropic."):
        name = name.removeprefix(vendor)
    fitting = [begin for begin in PRICES if name.startswith(begin)]
    return PRICES[max(fitting, key=len)] if fitting else None


def cost(
    model: str | None,
    *,
    given: int = 0,
    output: int = 0,
    cache_write: int = 0,
    cache_write_1h: int = 0,
    cache_read: int = 0,
) -> float | None:
    """What tokens of a model cost in dollars; None if its price is not known.

    `given` is the input that no cache had; `cache_write_1h` is a part of `cache_write`.
    """
    price = price_of(model or "")
    if price is None:
        return None
    dollars = (
        given * price.input
        + output * price.output
        + (cache_write - cache_write_1h) * price.cache_write
        + cache_write_1h * price.input * 2
        + cache_read * price.cache_read
    )
    return dollars / MILLION
