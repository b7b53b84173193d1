"""From a URL to a store, somebody else's included."""

from pathlib import Path

import pytest

from penstock import Penstock
from penstock.model.errors import InvalidOption
from penstock.store.open import open_store

MODULE = """
from penstock.store.open import open_store

def open_oracle(url, clock):
    assert url == "oracle://there"
    return open_store("sqlite:///:memory:", clock)
"""


@pytest.fixture
def _installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package that brings a store."""
    (tmp_path / "penstock_oracle.py").write_text(MODULE)
    facts = tmp_path / "penstock_oracle-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: penstock-oracle\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(
        "[penstock.stores]\noracle = penstock_oracle:open_oracle\n"
    )
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("_installed")
async def test_a_store_of_somebody_else_is_found_by_the_scheme_of_its_url() -> None:
    app = Penstock("oracle://there")

    @app.job
    async def add(a: int, b: int) -> int:
        return a + b

    async with app:
        assert (await add.enqueue(2, 3)).created


def test_a_scheme_that_nobody_brings_is_refused_with_what_there_is() -> None:
    with pytest.raises(InvalidOption, match=r"sqlite://, postgresql://.*penstock\.stores"):
        open_store("oracle://there")
