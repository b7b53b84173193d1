"""Nothing that comes from a job commands the terminal of who looks at it."""

import asyncio
import json
from pathlib import Path

from penstock import Penstock, Worker
from penstock.cli.output import json_text, lines, plain
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
