"""Numbers with their nouns, and lists of names."""

from collections.abc import Sequence

NAMED = 5


def counted(number: int, noun: str) -> str:
    """A number and its noun: `1 job`, `2,000 jobs`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """The first few of some names, and how many more there are: `a, b, c, d, e and 3 more`."""
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
