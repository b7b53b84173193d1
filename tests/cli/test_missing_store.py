"""Commands that only look at a store, or act on one, never make it."""

import pytest

from tests.support.vanishing import KINDS, find_vanishing

from .conftest import Cli

COMMANDS = [
    ("doctor",),
    ("jobs", "ls"),
    ("stats",),
    ("backup", "copy.db"),
    ("dead", "purge", "--all", "--yes"),
    ("reopen",),
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_store_that_is_not_there_is_not_made_by_looking_for_it(
    cli: Cli, kind: str, request: pytest.FixtureRequest
) -> None:
    place = find_vanishing(kind, "none", request)
    for command in COMMANDS:
        url = (place.url,) if command == ("reopen",) else ("--url", place.url)
        answer = cli(*command, *url)
        assert answer.code == 2, command
        assert answer.err.startswith("penstock: "), command
        assert place.traces() == [], command
