"""What the probes answered, kept by name until the end of the run."""

from collections import defaultdict
from collections.abc import Iterable
from statistics import median


class Readings:
    """Lists of numbers by name; the order within a name is that of the repetitions."""

    def __init__(self) -> None:
        self._values: defaultdict[str, list[float]] = defaultdict(list)

    def add(self, name: str, value: float) -> None:
        """Note one number."""
        self._values[name].append(value)

    def extend(self, name: str, values: Iterable[float]) -> None:
        """Note many."""
        self._values[name].extend(values)

    def has(self, name: str) -> bool:
        """Whether anything was noted under a name."""
        return bool(self._values.get(name))

    def beginning(self, prefix: str) -> list[str]:
        """The names with numbers that begin so."""
        return [name for name in self._values if name.startswith(prefix)]

    def median(self, name: str) -> float:
        """The middle of a name's numbers."""
        return median(self._values[name])

    def percentile(self, name: str, percent: int) -> float:
        """The number that `percent` of a name's numbers do not exceed."""
        ordered = sorted(self._values[name])
        return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)]

    def ratio(self, name: str, reference: str) -> float:
        """The median of the repetitions' own ratios: noise that hits a whole repetition cancels."""
        pairs = zip(self._values[name], self._values[reference], strict=False)
        return median([value / against for value, against in pairs])

    def spread(self) -> dict[str, dict[str, float]]:
        """Count, smallest, middle and largest of every name."""
        return {
            name: {
                "count": len(values),
                "min": min(values),
                "median": median(values),
                "max": max(values),
            }
            for name, values in self._values.items()
        }
