"""What is logged about jobs: all that helps to find them, and nothing that they hold."""

import json
from pathlib import Path
from typing import Any

import pytest

from penstock import Cancel, Context, Penstock, Snooze
from penstock.config import Settings
from penstock.logs import configure_logs
from penstock.testing import FakeClock, drain

CANARY = "canary-5d41402abc4b"
FACTS = {"job_id", "job_type", "queue", "worker_id", "attempts"}


def an_app(folder: Path, clock: FakeClock) -> Penstock:
    app = Penstock(settings=Settings(url=f"sqlite:///{folder}/jobs.db"), clock=clock)

    @app.job
    async def echo(ctx: Context, text: str) -> str:
        ctx.log(text)
        ctx.progress(50, text)
        await ctx.save_checkpoint(text)
        return text

    @app.job(max_retries=1, retry_delay=0)
    async def fail(text: str) -> None:
        raise ConnectionError(text)

    @app.job
    async def end(how: str, text: str) -> None:
        raise {"cancel": Cancel(text), "snooze": Snooze(1, text)}[how]

    return app


async def logged(
    folder: Path, capsys: pytest.CaptureFixture[str], level: str, **settings: Any
) -> list[dict[str, Any]]:
    """The lines of one job of every ending; all of them are given the canary."""
    clock = FakeClock()
    app = an_app(folder, clock)
    app.settings = app.settings.replace(**settings)
    configure_logs(json=True, level=level)
    capsys.readouterr()
    async with app:
        await app.find_type("echo").enqueue(CANARY)
        await app.find_type("fail").enqueue(CANARY)
        await app.find_type("end").enqueue("cancel", CANARY)
        await app.find_type("end").enqueue("snooze", CANARY)
        await drain(app, clock=clock, through=0.5)
        clock.advance(seconds=30)
        await drain(app)
    text = capsys.readouterr()
    assert CANARY not in text.err + text.out
    return [json.loads(line) for line in text.err.splitlines()]


def of(lines: list[dict[str, Any]], event: str) -> list[dict[str, Any]]:
    return [line for line in lines if line["event"] == event]


async def test_every_turn_of_a_job_is_one_json_line_for_who_asks_for_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = await logged(tmp_path, capsys, "debug")
    events = {line["event"] for line in lines}
    assert events >= {
        "job_enqueued",
        "job_claimed",
        "job_completed",
        "job_failed",
        "job_buried",
        "job_cancelled",
        "job_snoozed",
    }
    assert len(of(lines, "job_enqueued")) == 4
    (completed,) = of(lines, "job_completed")
    assert completed.keys() >= FACTS | {"duration_ms", "wait_ms", "level", "timestamp"}
    assert completed["job_type"] == "echo"
    (failed,), (buried,) = of(lines, "job_failed"), of(lines, "job_buried")
    assert failed["job_id"] == buried["job_id"]
    assert (failed["level"], failed["attempts"]) == ("warning", 1)
    assert (buried["level"], buried["attempts"]) == ("error", 2)
    assert buried.keys() >= FACTS | {"duration_ms", "error_class"}
    assert buried["error_code"] == "ConnectionError"
    claims = [line for line in of(lines, "job_claimed") if line["job_type"] == "fail"]
    assert [line["attempts"] for line in claims] == [0, 1]
    assert all(line.keys() >= FACTS for line in claims)


async def test_others_hear_of_failures_only(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = await logged(tmp_path, capsys, "info")
    jobs = {line["event"] for line in lines if line["event"].startswith("job_")}
    assert jobs == {"job_failed", "job_buried"}


async def test_a_program_that_has_not_configured_logs_gets_no_line_per_job(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app = an_app(tmp_path, FakeClock())
    async with app:
        await app.find_type("echo").enqueue(CANARY)
    assert capsys.readouterr().out == ""


async def test_claims_and_endings_are_info_lines_for_who_asks_for_them_there(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = await logged(tmp_path, capsys, "info", log_jobs=True)
    told = {line["event"]: line["level"] for line in lines}
    assert {told[f"job_{turn}"] for turn in ("claimed", "completed", "cancelled")} == {"info"}
    assert "job_enqueued" not in told
