"""The sanitiser as the gate of events and of the engine, and as a filter."""

import json
from io import BytesIO
from pathlib import Path

import pytest

from penstock import Context, Penstock
from penstock.apps.recorder.sanitise_command import portions
from penstock.events.event import InvalidEvent
from penstock.testing import drain
from tests.cli.conftest import Cli, cli  # noqa: F401

TOKEN = "gh" + "p_" + "aB3dE" * 8


@pytest.fixture
def app(tmp_path: Path) -> Penstock:
    return Penstock(f"sqlite:///{tmp_path}/work.db", extensions=["events", "recorder"])


async def test_events_pass_the_recorders_gate_where_it_is_enabled(app: Penstock) -> None:
    async with app:
        await app.events.append("noted", payload={"cwd": "/home/ada/x", "text": TOKEN})
        (event,) = await app.events.find()
    assert event.payload == {
        "cwd": "/home/[REDACTED_USER]/x",
        "text": "[REDACTED_GITHUB_TOKEN]",
    }


async def test_an_event_that_is_known_by_a_secret_is_refused(app: Penstock) -> None:
    async with app:
        with pytest.raises(InvalidEvent, match="in its session_id"):
            await app.events.append("noted", session_id=TOKEN)


async def test_the_errors_of_jobs_pass_it_too(app: Penstock) -> None:
    @app.job(name="fails", max_retries=0)
    async def fails(ctx: Context) -> None:
        raise ValueError("no such file: /home/ada/x")

    async with app:
        handle = await fails.enqueue()
        await drain(app)
        job = await app.get(handle.id)
    assert "/home/[REDACTED_USER]/x" in str(job.error)


def test_a_filter_writes_what_may_be_kept(cli: Cli, tmp_path: Path) -> None:  # noqa: F811
    path = tmp_path / "a.log"
    path.write_text(f"one {TOKEN}\ntwo ada@byron.uk\n")
    done = cli("sanitise", str(path))
    assert done.out == "one [REDACTED_GITHUB_TOKEN]\ntwo [REDACTED_EMAIL]\n"


def test_a_report_says_what_was_found_and_never_the_value(
    cli: Cli,  # noqa: F811
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.log"
    path.write_text(f"one {TOKEN}\ntwo {TOKEN}\n")
    done = cli("sanitise", "--report", "--json", str(path))
    assert json.loads(done.out) == [
        {"file": str(path), "rule": "github-token", "category": "github_token", "count": 2}
    ]
    assert TOKEN not in cli("sanitise", "--report", str(path)).out


def test_a_file_that_cannot_be_read_is_named(cli: Cli) -> None:  # noqa: F811
    done = cli("sanitise", "/no/such/file")
    assert done.code != 0
    assert "/no/such/file" in done.err


def test_portions_cut_no_key_in_two_and_lose_nothing() -> None:
    key = b"-----BEGIN RSA PRIVATE KEY-----\n" + b"QUJD" * 12 + b"\n-----END RSA PRIVATE KEY-----\n"
    text = b"line\n" * 209_710 + key * 30_000
    parts = list(portions(BytesIO(text)))
    assert b"".join(parts) == text
    assert len(parts) > 2
    assert all(part.count(b"-----BEGIN") == part.count(b"-----END") for part in parts)
