"""Log lines pass the redaction gate, each as a whole."""

import io
import sys

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


def test_a_line_is_one_write_so_that_processes_can_share_a_stream(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Unbuffered(io.StringIO):
        def write(self, text: str) -> int:
            writes.append(text)
            return len(text)

    writes: list[str] = []
    monkeypatch.setattr(sys, "stderr", Unbuffered())
    before = structlog.get_config()
    try:
        configure_logs(json=True)
        structlog.get_logger("penstock.worker").info("worker_started")
    finally:
        structlog.configure(**before)
    assert [text.endswith("\n") for text in writes] == [True]
