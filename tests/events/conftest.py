"""What all tests of events take for granted."""

import pytest

from penstock.events import fast_path, spool


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spool nothing because a busy machine is slow; tests of patience choose their own."""
    monkeypatch.setattr(spool, "PATIENCE_SECONDS", 30.0)


@pytest.fixture(autouse=True)
def brief(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have who reads an empty stream end soon, as it does so only between two reads."""
    monkeypatch.setattr(fast_path, "BLOCK_MS", 10)
