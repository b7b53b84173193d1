import asyncio
from pathlib import Path

import pytest

from penstock import Penstock, Settings, Worker
from penstock.cli.output import bar
from penstock.model.job import NewJob
from penstock.model.states import Status
from tests.cli.conftest import Cli


async def open_breaker(url: str) -> None:
    app = Penstock(settings=Settings(url=url))

    @app.job(breaker="mailer", retry_delay=3600)
    async def send_mail() -> None:
        raise ConnectionError("no answer")

    app.breaker("mailer", failures=1, cool_down=3600)
    async with app:
        await send_mail.enqueue()
        await Worker(app, burst=True).run()


def test_limits_are_set_listed_and_taken_away(shopped: Cli) -> None:
    assert "No limits" in shopped("limits", "ls").out
    set_ = shopped("limits", "set", "key", "openai", "--concurrency", "3", "--rate", "60/min")
    assert set_.code == 0
    listed = shopped("limits", "ls").out
    for part in ("openai", "3 at once", "60 per 1 min", "0/3", "░░░░░░░░░░", "an operator"):
        assert part in listed
    [concurrency, rate] = shopped("limits", "ls", "--json").json
    assert (concurrency["kind"], concurrency["capacity"]) == ("concurrency", 3)
    assert (rate["scope"], rate["name"], rate["interval_ms"]) == ("key", "openai", 60_000)
    assert (rate["by_operator"], rate["used"]) == (True, 0)
    assert shopped("limits", "rm", "key", "openai", "--kind", "rate").code == 0
    assert len(shopped("limits", "ls", "--json").json) == 1
    assert shopped("limits", "rm", "key", "openai", "--json").json["removed"]["name"] == "openai"


@pytest.mark.parametrize(
    ("kind", "name", "meant"),
    [
        ("queue", "defalt", "; did you mean 'default'?"),
        ("queue", "warehouse", "."),
        ("type", "gret", "; did you mean 'greet'?"),
    ],
)
def test_a_pause_of_what_nobody_knows_is_made_with_a_warning(
    shopped: Cli, kind: str, name: str, meant: str
) -> None:
    answer = shopped("pause", kind, name)
    assert answer.code == 0
    assert answer.says(f"no job and no live worker uses the {kind} '{name}'{meant}")
    assert name in shopped("pauses").out


@pytest.mark.parametrize(
    ("kind", "name"), [("queue", "default"), ("type", "greet"), ("tenant", "a")]
)
def test_a_pause_of_what_is_known_is_made_without_a_word(
    shopped: Cli, kind: str, name: str
) -> None:
    assert shopped("pause", kind, name).err == ""


def test_a_limit_for_each_tenant_says_so(shopped: Cli) -> None:
    shopped("limits", "set", "tenant", "*", "--concurrency", "2")
    assert "tenant  *" in shopped("limits", "ls").out


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (("set", "key", "k", "--concurrency", "0"), ("'concurrency' is 0", "pause it to stop it")),
        (("set", "key", "k", "--rate", "fast"), ("'rate' is 'fast'",)),
        (("set", "key", "k", "--depth", "9"), ("'depth' is 9",)),
        (("set", "key", "k"), ("what it bounds",)),
        (("set", "worker", "w", "--concurrency", "1"), ("worker",)),
        (("rm", "key", "unknown"), ("There is no limit on key 'unknown'",)),
    ],
)
def test_a_limit_that_makes_no_sense_is_one_sentence(
    shopped: Cli, words: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    answer = shopped("limits", *words)
    assert answer.code in (2, 3)
    assert answer.says(*parts)


def test_pauses_are_made_listed_and_ended(shopped: Cli) -> None:
    assert "Nothing is paused" in shopped("pauses").out
    assert shopped("pause", "queue", "mail", "--reason", "deploy", "--by", "ada").code == 0
    assert shopped("pause", "tenant", "acme", "--json").json["scope"] == "tenant"
    listed = shopped("pauses").out
    for part in ("mail", "deploy", "ada", "acme"):
        assert part in listed
    assert [one["name"] for one in shopped("pauses", "--json").json] == ["mail", "acme"]
    assert "is resumed" in shopped("resume", "queue", "mail").out
    assert "was not paused" in shopped("resume", "queue", "mail").out
    assert shopped("resume", "queue", "mail", "--json").json == {"resumed": False}


def test_a_job_is_paused_and_resumed_by_its_id(shopped: Cli) -> None:
    [job] = shopped("jobs", "ls", "--status", "failed", "--json").json
    assert shopped("pause", "job", job["id"]).code == 0
    assert shopped("jobs", "show", job["id"], "--json").json["status"] == "paused"
    assert shopped("resume", "job", job["id"]).code == 0
    answer = shopped("pause", "job", "01JD0000000000000000000000")
    assert (answer.code, answer.says("01JD0000000000000000000000")) == (3, True)


def test_an_ended_job_is_not_paused(shopped: Cli) -> None:
    [job, *_] = shopped("jobs", "ls", "--status", "completed", "--json").json
    answer = shopped("pause", "job", job["id"])
    assert (answer.code, answer.says("completed")) == (2, True)


def test_breakers_are_listed_and_reset(shopped: Cli, tmp_path: Path) -> None:
    assert "No breakers" in shopped("breakers", "ls").out
    assert shopped("breakers", "ls", "--json").json == []
    asyncio.run(open_breaker(f"sqlite:///{tmp_path}/work.db"))
    listed = shopped("breakers", "ls").out
    for part in ("mailer", "open", "1/1", "██████████", "send_mail", "TRIES AGAIN IN"):
        assert part in listed
    [found] = shopped("breakers", "ls", "--json").json
    assert (found["name"], found["position"], found["types"]) == ("mailer", "open", ["send_mail"])
    assert "is closed" in shopped("breakers", "reset", "mailer").out
    assert shopped("breakers", "ls", "--json").json[0]["position"] == "closed"
    answer = shopped("breakers", "reset", "stripe")
    assert (answer.code, answer.says("There is no breaker 'stripe'")) == (3, True)


def test_a_bar_shows_a_little_of_anything_and_red_for_all_of_it() -> None:
    assert bar(0, 10).count("█") == 0
    assert bar(1, 1000).count("█") == 1
    assert bar(5, 10).count("█") == 5
    assert "red" in bar(12, 10)
    assert bar(12, 10).count("█") == 10


async def follow(url: str) -> None:
    async with Penstock(settings=Settings(url=url)) as app:
        await app.store.changes.follow("links.clicks", [Status.QUEUED, Status.COMPLETED])
        await app.store.jobs.enqueue([NewJob(id="1", type="greet")])


def test_followers_are_listed_and_dropped(shopped: Cli, tmp_path: Path) -> None:
    assert "No followers" in shopped("followers", "ls").out
    asyncio.run(follow(f"sqlite:///{tmp_path}/work.db"))
    listed = shopped("followers", "ls").out
    for part in ("links.clicks", "completed, queued"):
        assert part in listed
    [state] = shopped("followers", "ls", "--json").json
    assert (state["name"], state["waiting"]) == ("links.clicks", 1)
    assert state["oldest_at"].endswith("Z")
    assert any(c["name"] == "followers" for c in shopped("doctor", "--json").json["checks"])
    assert shopped("followers", "drop", "links.clicks", stdin="n\n").code != 0
    assert shopped("followers", "drop", "links.clicks", "--yes", "--json").json == {
        "dropped": "links.clicks"
    }
    gone = shopped("followers", "drop", "links.clicks", "--yes")
    assert gone.says("There is no follower 'links.clicks'")
