"""Log lines pass the redaction gate."""

import pytest
import structlog

from penstock.logs import configure_logs


def test_a_secret_in_an_exception_does_not_reach_the_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = structlog.get_config()
    try:
        configure_logs(json=True)
        try:
            raise ValueError("password=hunter2-and-more")
        except ValueError:
            structlog.get_logger("test").exception("hook_failed", error="token=abcdef123456789")
    finally:
        structlog.configure(**before)
    written = capsys.readouterr().err
    assert "hook_failed" in written
    assert "hunter2" not in written
    assert "abcdef123456789" not in written
