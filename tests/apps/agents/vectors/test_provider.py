"""Which vector store an application has: ours, or one of its own."""

from typing import Any

import pytest

from penstock import Penstock
from penstock.apps.agents.vectors.reindex import rows_of
from penstock.apps.agents.vectors.store import vectors_of
from penstock.model.errors import InvalidOption
from tests.apps.agents.vectors.conftest import Make


class Shelf:
    """A store of vectors of one's own, as far as it is looked at here."""

    def __init__(self, app: Penstock, width: int) -> None:
        self.app = app
        self.width = width

    async def close(self) -> None:
        """Nothing is open."""


OWN = {"provider": "tests.apps.agents.vectors.test_provider:Shelf", "settings": {"width": 3}}


async def test_a_provider_of_ones_own_is_given_the_application_and_its_settings(
    make: Make,
) -> None:
    async with make("sqlite", "", vectors=OWN) as app:
        shelf: Any = vectors_of(app)
        assert (type(shelf).__name__, shelf.app, shelf.width) == ("Shelf", app, 3)
        with pytest.raises(InvalidOption, match="embeds again by itself"):
            rows_of(app)


@pytest.mark.parametrize(
    ("provider", "problem"),
    [("pgvector", "pgvector is for tables on PostgreSQL"), ("faiss", "or a module:name")],
)
async def test_a_provider_that_cannot_be_is_refused(
    make: Make, provider: str, problem: str
) -> None:
    async with make("sqlite", provider) as app:
        with pytest.raises(InvalidOption, match=problem):
            vectors_of(app)
