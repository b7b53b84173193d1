"""The tier of a case: the smallest run that includes it.

| tier      | command         | runs                                                            |
|-----------|-----------------|-----------------------------------------------------------------|
| `test`    | `make test`     | its own cases                                                   |
| `all`     | `make test-all` | `test` and `all`                                                |
| `long`    | `make long`     | `test`, `all` and `long`, with random input on every flavour    |
| `outside` | `make outside`  | its own cases, which need other people's tools                  |

A folder decides for its cases, and a marker decides against the folder: `quick` moves a case to
`test`, `thorough` to `all`. With arguments a marker is about some parameters only:
`thorough("postgres", "valkey")` leaves the case on SQLite where it is.
"""

from pathlib import Path

import pytest

FOLDERS = {
    "browser": "all",
    "demo": "all",
    "deploy": "all",
    "examples": "all",
    "faults": "all",
    "proof": "all",
    "torture": "all",
    "outside": "outside",
}
MARKERS = {"quick": "test", "thorough": "all", "long": "long", "outside": "outside"}
RUNS = {
    "test": ("test",),
    "all": ("test", "all"),
    "long": ("test", "all", "long"),
    "outside": ("outside",),
}
TESTS = Path(__file__).parents[1]


def tier_of(item: pytest.Item) -> str:
    """Return the tier by the nearest marker, first of those with arguments, or by the folder."""
    callspec = getattr(item, "callspec", None)
    parameters = tuple(callspec.params.values()) if callspec else ()
    own = tuple(callspec.marks) if callspec else ()
    marks = [mark for mark in (*own, *item.iter_markers()) if mark.name in MARKERS]
    for mark in sorted(marks, key=lambda mark: not mark.args):
        if _concerns(mark, parameters):
            return MARKERS[mark.name]
    folder = item.path.relative_to(TESTS).parts[0] if item.path.is_relative_to(TESTS) else ""
    return FOLDERS.get(folder, "test")


def _concerns(mark: pytest.Mark, parameters: tuple[object, ...]) -> bool:
    """Return True unless the marker names parameters that the case does not have."""
    named = [each for each in parameters if isinstance(each, str) and each in mark.args]
    return not mark.args or bool(named)


def select(items: list[pytest.Item], tier: str) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Split the cases into those that a tier's run includes and those that it leaves out."""
    included: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        (included if tier_of(item) in RUNS[tier] else left_out).append(item)
    return included, left_out
