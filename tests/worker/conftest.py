import pytest

from penstock.testing import Signals
from penstock.worker.running import Running


@pytest.fixture
def signals() -> Signals:
    return Signals()


@pytest.fixture
def cancels(signals: Signals, monkeypatch: pytest.MonkeyPatch) -> Signals:
    """Signals `cancel heard` when a worker has passed a cancellation on."""
    request = Running.request_cancel

    def signalled(self: Running, grace_until: int) -> None:
        request(self, grace_until)
        signals.send("cancel heard", self.lease.id)

    monkeypatch.setattr(Running, "request_cancel", signalled)
    return signals
