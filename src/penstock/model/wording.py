"""Numbers, names, times and spans of time as people say them."""

from collections.abc import Sequence
from itertools import pairwise

from penstock.model.clock import utc

NAMED = 5


def counted(number: int, noun: str) -> str:
    """A number and its noun: `1 job`, `2,000 jobs`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def listed(names: Sequence[str]) -> str:
    """The first few of some names, and how many more there are: `a, b, c, d, e and 3 more`."""
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


UNITS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1_000))


def ago(then: int | None, now: int) -> str:
    """A moment as seen from another: `3 min ago`, `in 4 s`, `now`."""
    if then is None:
        return "–"
    distance = now - then
    if abs(distance) < 1_000:
        return "now"
    size = _coarse(abs(distance))
    return f"{size} ago" if distance > 0 else f"in {size}"


def span(ms: float | None) -> str:
    """How long something takes: `850 ms`, `1.2 s`, `3 min 20 s`."""
    if ms is None:
        return "–"
    if ms < 1_000:
        return f"{ms:.0f} ms"
    if ms < 60_000:
        return f"{ms / 1_000:.1f} s".replace(".0 s", " s")
    for (unit, size), (smaller, part) in pairwise(UNITS):
        if ms >= size:
            rest = int(ms % size // part)
            return f"{int(ms // size)} {unit}" + (f" {rest} {smaller}" if rest else "")
    return f"{ms / 1_000:.0f} s"


def moment(ms: int, now: int) -> str:
    """A time of day, with its date unless that is today: `10:02 UTC`, `2026-11-14 10:02 UTC`."""
    then, today = (utc(at) for at in (ms, now))
    told = then.strftime("%H:%M") if abs(now - ms) >= 60_000 else then.strftime("%H:%M:%S")
    date = "" if then.date() == today.date() else f"{then.date()} "
    return f"{date}{told} UTC"


def _coarse(ms: int) -> str:
    for unit, size in UNITS:
        if ms >= size:
            return f"{ms // size} {unit}"
    return "0 s"


FEW = 3
QUOTED = 200


def brief(text: str) -> str:
    """Somebody's words on one line, cut where they go on for long, to stand inside a sentence."""
    words = " ".join(text.split())
    return (words if len(words) <= QUOTED else f"{words[: QUOTED - 1]}…").rstrip(".")


def few(names: Sequence[str], count: int | None = None) -> str:
    """The first few names and how many more: `a, b, c and 4 more`."""
    shown = list(names[:FEW])
    more = (len(names) if count is None else count) - len(shown)
    if more > 0 and shown:
        return f"{', '.join(shown)} and {more:,} more"
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))


def money(dollars: float | None) -> str:
    """US dollars: `$12.30`, `$0.042`; a dash where the price is not known."""
    if dollars is None:
        return "–"
    if dollars == 0:
        return "$0"
    if dollars < 0.001:
        return "< $0.001"
    return f"${dollars:,.2f}" if dollars >= 0.1 else f"${dollars:.3f}"


def short(number: int) -> str:
    """A large number in few characters: `1.2 M`, `45 k`, `912`."""
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if number >= size:
            figure = number / size
            return f"{figure:,.0f} {unit}" if figure >= 100 else f"{figure:.1f} {unit}"
    return f"{number:,}"
