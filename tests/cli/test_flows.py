"""Jobs that run after others, on the command line."""

import asyncio
from pathlib import Path

import pytest

from penstock import Worker, after, chain, group
from tests.cli import shop

from .conftest import Cli

GONE = "01JD0000000000000000000000"


@pytest.fixture
def flow(tmp_path: Path, cli: Cli) -> list[str]:
    """A chain that died in its second step: the ids of doomed, greet, two more and one outside."""

    async def work() -> list[str]:
        app = shop.build(f"sqlite:///{tmp_path / 'work.db'}")
        greet, doomed = app.find_type("greet"), app.find_type("doomed")
        async with app:
            first = greet.new("ada")
            held = await app.enqueue(
                chain(first, doomed.partial(), group(greet.new("bob"), greet.new("cid")))
            )
            condition = after(held.jobs[0], condition="len(result) > 100")
            skipped = await greet.options(after=condition).enqueue("dan")
            await Worker(app, burst=True).run()
            return [*held.ids, skipped.id]

    assert cli is not None
    return asyncio.run(work())


def test_a_job_is_enqueued_after_others(cli: Cli) -> None:
    first, second = (cli("enqueue", "greet", "--json").json["id"] for _ in range(2))
    made = cli("enqueue", "greet", "--after", first, "--after", second, "--json").json
    assert made["status"] == "pending"
    shown = cli("jobs", "show", made["id"], "--json").json
    assert {edge["parent_id"] for edge in shown["parents"]} == {first, second}
    assert "waits for 2 jobs" in cli("jobs", "ls").out


@pytest.mark.parametrize("parent", [GONE, "nonsense"])
def test_a_parent_that_is_not_there_is_refused(cli: Cli, parent: str) -> None:
    cli("enqueue", "greet")
    assert cli("enqueue", "greet", "--after", parent).says(parent)
    assert len(cli("jobs", "ls", "--json").json) == 1


def test_a_job_is_shown_with_its_parents_and_children(cli: Cli, flow: list[str]) -> None:
    out = cli("jobs", "show", flow[1]).out
    assert "WAITS FOR" in out
    assert "BLOCKS" in out
    assert all(job_id in out for job_id in flow[:4])
    shown = cli("jobs", "show", flow[1], "--json").json
    assert [edge["argument"] for edge in shown["parents"]] == ["order"]
    assert {edge["outcome"] for edge in shown["children"]} == {"cancelled"}


def test_a_job_that_fell_with_its_parent_points_at_what_failed(cli: Cli, flow: list[str]) -> None:
    for command in ("show", "explain"):
        out = cli("jobs", command, flow[2]).out
        assert "penstock jobs requeue" not in out
        assert f"penstock jobs tree {flow[2]}" in " ".join(out.split())


@pytest.mark.parametrize("place", range(5))
def test_the_tree_is_the_same_from_every_job_of_it(cli: Cli, flow: list[str], place: int) -> None:
    answer = cli("jobs", "tree", flow[place])
    lines = answer.out.splitlines()
    assert flow[0] in lines[0]
    assert all(job_id in answer.out for job_id in flow)
    assert "as order" in answer.out
    assert "if len(result) > 100" in answer.out
    assert "dead_letter" in answer.out
    found = cli("jobs", "tree", flow[place], "--json").json
    assert found["id"] == flow[place]
    assert {job["id"] for job in found["jobs"]} == set(flow)
    assert len(found["edges"]) == 4


def test_a_step_that_is_run_again_says_that_later_steps_are_not_repeated(
    cli: Cli, flow: list[str]
) -> None:
    assert "Not repeated: 2 jobs that came after it" in cli("jobs", "run-again", flow[0]).out
    assert "Not repeated" not in cli("jobs", "run-again", flow[2]).out


def test_a_fan_in_is_written_out_once(cli: Cli) -> None:
    parents = [cli("enqueue", "greet", "--json").json["id"] for _ in range(2)]
    waits = [word for parent in parents for word in ("--after", parent)]
    foot = cli("enqueue", "greet", *waits, "--json").json["id"]
    last = cli("enqueue", "greet", "--after", foot, "--json").json["id"]
    out = cli("jobs", "tree", last).out
    assert out.count(foot) == 2
    assert out.count("see above") == 1
    assert out.count(last) == 1


def test_a_job_alone_is_a_tree_too(cli: Cli) -> None:
    job_id = cli("enqueue", "greet", "--json").json["id"]
    assert cli("jobs", "tree", job_id).out.split() == ["greet", job_id, "queued"]
    assert cli("jobs", "tree", GONE).says(GONE)


def test_a_waiting_job_is_given_more_to_wait_for(cli: Cli) -> None:
    first, second = (cli("enqueue", "greet", "--json").json["id"] for _ in range(2))
    last = cli("enqueue", "greet", "--after", first, "--json").json["id"]
    assert f"{last} waits for 2 jobs." in cli("jobs", "after", last, second).out
    shown = cli("jobs", "after", last, second, "--completion", "--json").json
    assert (shown["id"], shown["waiting_on"]) == (last, 3)
    [entry] = cli("audit", "ls", "--json").json[:1]
    assert (entry["action"], entry["details"]["parents"]) == ("job.depend", [second])
    assert cli("jobs", "after", last, GONE).says(GONE)
    assert cli("jobs", "after", second, last).says("queued")
