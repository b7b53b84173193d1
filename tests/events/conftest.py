"""What all tests of events take for granted."""

import pytest

from penstock.events import spool


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Spool nothing because a busy machine is slow; tests of patience choose their own."""
    monkeypatch.setattr(spool, "PATIENCE_SECONDS", 30.0)
