"""Nothing that comes from a job commands the terminal of who looks at it."""

import asyncio
import json
from pathlib import Path

import pytest

from penstock import Context, Penstock, Worker
from penstock.cli.output import json_text, lines, plain, progress_bars
from penstock.cli.root import say

from .conftest import Cli

HOSTILE = "\x1b[31mred\x1b]0;title\x07\x9b2J\x85\u202e\r\nnext [bold]x[/]"
COMMANDS = set("\x1b\x07\x9b\x85\u202e\r\x7f")


def test_text_is_shown_without_commands() -> None:
    assert not COMMANDS & set(plain(HOSTILE) + lines(HOSTILE) + json_text({HOSTILE: [HOSTILE]}))
    assert "\n" in lines(HOSTILE)
    assert "\n" not in plain(HOSTILE)


def test_json_stays_the_same_document() -> None:
    for document in ({HOSTILE: HOSTILE}, ["ä", "日本", "\U0001f600", "\u00a0", "\U000e0001"], 1.5):
        assert json.loads(json_text(document)) == document
        assert json.loads(json_text(document, indent=None)) == document
    assert json_text("äé日") == '"äé日"'


def test_a_sentence_about_what_went_wrong_commands_nothing(capsys: object) -> None:
    say(HOSTILE, 2)
    assert not COMMANDS & set(capsys.readouterr().err)  # type: ignore[attr-defined]


def test_no_command_passes_on_what_a_hostile_job_holds(cli: Cli, tmp_path: Path) -> None:
    job_id = asyncio.run(died(f"sqlite:///{tmp_path}/work.db"))
    cli("alerts", "ls")
    for words in (
        ("jobs", "ls"),
        ("jobs", "ls", "--json"),
        ("jobs", "show", job_id),
        ("jobs", "logs", job_id),
        ("jobs", "logs", job_id, "--json"),
        ("jobs", "explain", job_id),
        ("dead", "ls"),
        ("dead", "show", job_id),
        ("dead", "show", job_id, "--json"),
        ("dead", "groups"),
        ("audit", "ls"),
        ("top", "--once"),
    ):
        answer = cli(*words)
        assert answer.code == 0, answer.err
        assert not COMMANDS & set(answer.out + answer.err), words


async def died(url: str) -> str:
    """A job that died with hostile text wherever there is room for it."""
    app = Penstock(url)

    @app.job(max_retries=0)
    async def fail(text: str) -> None:
        raise ValueError(text)

    async with app:
        call = fail.options(tags=(HOSTILE,), tenant=HOSTILE, key=HOSTILE, metadata={"x": HOSTILE})
        handle = await app.enqueue(call.new(HOSTILE))
        await Worker(app, burst=True).run()
        await app.dead.resolve([handle.id], "investigating", notes=HOSTILE, by=HOSTILE)
        return handle.id


def test_without_a_terminal_progress_is_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 0.0
    monkeypatch.setattr("penstock.cli.output.monotonic", lambda: now)
    with progress_bars() as show:
        for done in range(0, 2001, 100):
            show("jobs", done, 2000)
            now += 1.0
        show("rows", 7, None)
    assert capsys.readouterr().err.splitlines() == [
        "jobs: 500 of 2,000",
        "jobs: 1,000 of 2,000",
        "jobs: 1,500 of 2,000",
        "jobs: 2,000 of 2,000",
    ]


def test_progress_of_a_job_can_be_read_without_colours(cli: Cli, tmp_path: Path) -> None:
    async def begin() -> str:
        app = Penstock(f"sqlite:///{tmp_path}/work.db")

        @app.job(max_retries=0)
        async def half(ctx: Context) -> None:
            ctx.progress(50, "half")

        async with app:
            handle = await half.enqueue()
            await Worker(app, burst=True).run()
        return handle.id

    shown = cli("jobs", "show", asyncio.run(begin())).out
    assert "█" * 10 + "░" * 10 + " 50 %" in shown
