"""What is logged about jobs: all that helps to find them, their errors, and nothing they hold."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from penstock import Cancel, Context, Penstock, Snooze
from penstock.config import Settings
from penstock.logs import configure_logs
from penstock.testing import FakeClock, drain
from tests.worker import handlers

CANARY = "canary-5d41402abc4b"
FACTS = {"job_id", "job_type", "queue", "worker_id", "attempt"}


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
        raise ConnectionError("password=hunter2-and-more, and no luck")

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
    assert (failed["level"], failed["attempt"]) == ("warning", 1)
    assert (buried["level"], buried["attempt"]) == ("error", 2)
    assert buried.keys() >= FACTS | {"duration_ms", "error_class"}
    assert buried["error_code"] == "ConnectionError"
    assert buried["error"] == "ConnectionError: password=[REDACTED_PASSWORD], and no luck"
    assert buried["see"] == f"penstock jobs show {buried['job_id']}"
    assert failed["retry_in_ms"] >= 0
    claims = [line for line in of(lines, "job_claimed") if line["job_type"] == "fail"]
    assert [line["attempt"] for line in claims] == [1, 2]
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


async def told(folder: Path, capsys: pytest.CaptureFixture[str], job: Any, **how: Any) -> str:
    """What the console says of a job that fails."""
    app = Penstock(settings=Settings(url=f"sqlite:///{folder}/jobs.db"))
    failing = app.job(max_retries=0)(job)
    configure_logs(**how)
    async with app:
        await failing.enqueue()
        await drain(app)
    return capsys.readouterr().err


async def lookup() -> None:
    orders: dict[str, str] = {}
    assert orders["customer"], "password=hunter2-and-more"


def lookup_in_thread() -> None:
    raise ValueError("password=hunter2-and-more")


@pytest.mark.parametrize("job", [lookup, lookup_in_thread])
async def test_a_person_is_shown_the_traceback_with_our_own_frames_folded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], job: Any
) -> None:
    shown = await told(tmp_path, capsys, job, tracebacks=True)
    assert "Traceback (most recent call last):" in shown
    assert re.search(r"\n  … \d+ frames? of penstock\n  File .*test_lines.py", shown)
    assert f"in {job.__name__}" in shown
    assert "penstock/worker" not in shown
    assert "hunter2" not in shown
    assert "\033[" not in shown


async def test_the_traceback_is_that_of_the_process_in_which_the_handler_ran(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app = handlers.app
    app.settings = app.settings.replace(url=f"sqlite:///{tmp_path}/jobs.db")
    app.__dict__.pop("store", None)
    configure_logs(tracebacks=True)
    async with app:
        job = await handlers.fail.enqueue("plain")
        await drain(app)
        [run] = await app.executions(job.id)
    shown = capsys.readouterr().err
    assert re.search(r"\n  … \d+ frames? of penstock\n  File .*handlers.py", shown)
    assert "PermissionError: not yours" in shown
    assert "penstock/worker" not in shown
    assert str(run.error_stack).count("PermissionError: not yours") == 1


async def test_elsewhere_the_line_has_the_error_and_names_the_command_that_shows_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown = await told(tmp_path, capsys, lookup)
    assert "Traceback" not in shown
    assert "error=\"KeyError: 'customer'\"" in shown
    assert "penstock jobs show 01" in shown


async def test_colours_are_for_terminals_alone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.delenv("NO_COLOR", raising=False)
    shown = await told(tmp_path, capsys, lookup)
    assert "\033[1;31mKeyError: 'customer'\033[0m" in shown
    [line] = [line for line in shown.splitlines() if "job_buried" in line]
    assert "worker_id" not in line
    assert re.search(r"\033\[2m  … \d+ frames? of penstock\033\[0m", shown)
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\033[" not in await told(tmp_path, capsys, lookup)
