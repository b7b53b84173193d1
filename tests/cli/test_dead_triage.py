import asyncio
from pathlib import Path

import pytest

from penstock import Penstock, Settings, Worker

from . import shop
from .conftest import Cli

APP = ("--app", "tests.cli.shop:app")


@pytest.fixture(autouse=True)
def fresh(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An application on this test's store: one that was opened once keeps its own."""
    monkeypatch.setattr(shop, "app", shop.build(url))


def mended(url: str) -> Penstock:
    """The shop once the cause is gone."""
    app = Penstock(settings=Settings(url=url))

    @app.job(name="doomed")
    async def doomed(order: str) -> str:
        return order

    return app


def run_worker(app: Penstock) -> None:
    async def work() -> None:
        async with app:
            await Worker(app, burst=True).run()

    asyncio.run(work())


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'work.db'}"


def group_of(cli: Cli) -> str:
    [group] = cli("dead", "groups", "--json").json
    found: str = group["id"]
    return found


def test_groups_are_listed(shopped: Cli) -> None:
    [group] = shopped("dead", "groups", "--json").json
    assert (group["type"], group["count"], group["open"]) == ("doomed", 2, 2)
    assert group["first_at"].endswith("Z")
    out = shopped("dead", "groups").out
    assert group["id"] in out
    assert f"penstock dead replay {group['id']}" in out
    assert max(map(len, out.splitlines())) <= 100


def test_groups_are_listed_in_pages(shopped: Cli) -> None:
    [group] = shopped("dead", "groups", "--json").json
    assert f"--before {group['newest_id']}" in shopped("dead", "groups", "--limit", "1").out
    assert shopped("dead", "groups", "--before", group["newest_id"], "--json").json == []


def test_a_letter_is_shown_with_its_group(shopped: Cli) -> None:
    group = group_of(shopped)
    [letter, _] = shopped("dead", "ls", "--json").json
    shown = shopped("dead", "show", letter["job_id"], "--json").json
    assert (shown["group"]["id"], shown["group"]["count"]) == (group, 2)
    out = shopped("dead", "show", letter["job_id"]).out
    assert f"{group}, 2 alike, 2 of them open" in out


def test_a_letter_is_shown_with_its_traceback(cli: Cli, url: str) -> None:
    app = Penstock(settings=Settings(url=url))

    @app.job(name="greet")
    async def greet(name: str) -> None:
        raise LookupError(name)

    cli("enqueue", "greet", "--payload", '{"name":"ada"}', "--max-retries", "0")
    run_worker(app)
    [letter] = cli("dead", "ls", "--json").json
    assert "Traceback" in cli("dead", "show", letter["job_id"]).out
    assert "Traceback" in cli("dead", "show", letter["job_id"], "--json").json["stack"]


def test_canaries_first_and_then_the_rest(shopped: Cli, url: str) -> None:
    group = group_of(shopped)
    replayed = shopped("dead", "replay", group, "--canary", "1", "--json").json
    assert len(replayed["replayed"]) == 1
    early = shopped("dead", "release", group)
    assert early.code == 2
    assert early.says("1 have not ended", "force")
    run_worker(mended(url))
    answer = shopped("dead", "release", group, "--rate", "100/s")
    assert (answer.code, answer.out) == (0, "Released 1 job at 100/s.\n")
    assert shopped("dead", "groups").out == "No dead letter is open.\n"
    assert "nothing was released" in shopped("dead", "release", group).out


def test_a_canary_that_fails_again_holds_the_release(shopped: Cli, url: str) -> None:
    group = group_of(shopped)
    shopped("dead", "replay", group, "--canary", "1")
    run_worker(shop.build(url))
    refused = shopped("dead", "release", group)
    assert refused.code == 2
    assert refused.says("1 of its canaries did not complete")
    forced = shopped("dead", "release", group, "--force", "--json")
    assert (forced.code, len(forced.json["released"])) == (0, 2)


def test_waiting_for_canaries_that_nobody_runs_ends_with_code_1(shopped: Cli) -> None:
    group = group_of(shopped)
    answer = shopped("dead", "replay", group, "--canary", "2", "--wait", "10ms", "--json")
    assert answer.code == 1
    assert len(answer.json["unfinished"]) == 2


def test_a_release_without_canaries_needs_a_yes(shopped: Cli) -> None:
    group = group_of(shopped)
    asked = shopped("dead", "release", group)
    assert asked.code == 2
    assert asked.says("No canary", "Release 2 jobs anyway?", "--yes")
    assert len(shopped("dead", "release", group, "--yes", "--json").json["released"]) == 2


def test_a_release_is_spread(shopped: Cli) -> None:
    group = group_of(shopped)
    ids = shopped("dead", "release", group, "--rate", "1/h", "--yes", "--json").json["released"]
    one, two = (shopped("jobs", "show", job_id, "--json").json["scheduled_at"] for job_id in ids)
    assert one < two


def test_arguments_are_corrected(shopped: Cli) -> None:
    job_id = shopped("dead", "ls", "--json").json[0]["job_id"]
    amended = shopped("dead", "amend", job_id, "--args", '{"order":"B-1"}', *APP, "--json")
    assert amended.json["payload"] == {"order": "B-1"}
    assert amended.json["status"] == "dead_letter"
    again = shopped("dead", "amend", job_id, "--payload", '{"order":"B-2"}', *APP, "--requeue")
    assert again.out == f"{job_id} has new arguments and is queued again.\n"
    found = shopped("jobs", "show", job_id, "--json").json
    assert (found["status"], found["payload"]) == ("pending", {"order": "B-2"})


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--args", '{"order":1}'), "expected str, got int"),
        (("--args", '{"colour":1}'), "'colour'"),
        (("--args", "[1]"), "an object"),
        (("--args", "{"), "not JSON"),
        (("--payload", "{}"), "got nothing"),
        ((), "--args or --payload"),
        (("--args", "{}", "--payload", "{}"), "only one of them"),
    ],
)
def test_arguments_that_do_not_fit_are_one_sentence(
    shopped: Cli, words: tuple[str, ...], part: str
) -> None:
    job_id = shopped("dead", "ls", "--json").json[0]["job_id"]
    answer = shopped("dead", "amend", job_id, *words, *APP)
    assert answer.code == 2
    assert answer.says(part)


def test_a_group_is_resolved_with_a_note(shopped: Cli) -> None:
    group = group_of(shopped)
    words = ("--group", group, "--as", "ignored", "--notes", "test orders", "--by", "ada")
    assert len(shopped("dead", "resolve", *words, "--json").json["ids"]) == 2
    [letter, _] = shopped("dead", "ls", "--resolution", "any", "--json").json
    assert (letter["resolution"], letter["notes"]) == ("ignored", "test orders")
    assert shopped("dead", "groups", "--all", "--json").json[0]["open"] == 0


@pytest.mark.parametrize("words", [("replay", "nope"), ("release", "nope")])
def test_an_unknown_group_is_one_sentence_with_code_3(shopped: Cli, words: tuple[str, ...]) -> None:
    answer = shopped("dead", *words)
    assert answer.code == 3
    assert answer.says("'nope'", "penstock dead groups")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("release", "GROUP", "--rate", "fast", "--yes"), "'fast'"),
        (("replay", "GROUP", "--wait", "soon"), "'soon'"),
        (("resolve",), "only one of them"),
        (("resolve", "01X", "--group", "GROUP"), "only one of them"),
    ],
)
def test_wrong_input_is_one_sentence(shopped: Cli, words: tuple[str, ...], part: str) -> None:
    group = group_of(shopped)
    answer = shopped("dead", *(group if word == "GROUP" else word for word in words))
    assert answer.code == 2
    assert answer.says(part)
