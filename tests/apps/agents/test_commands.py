"""`penstock agents …` at the terminal."""

from pathlib import Path

import pytest

from penstock.apps.agents.jobs import WORKERS
from penstock.apps.agents.options import OPTIONS
from tests.cli.conftest import Cli, cli  # noqa: F401


def test_ls_lists_all_eighteen_types_as_the_table_of_options_has_them(
    cli: Cli,  # noqa: F811
    tmp_path: Path,
) -> None:
    found = cli("agents", "ls", "--json").json
    assert [each["type"] for each in found] == [worker.name for worker in WORKERS]
    assert {each["type"] for each in found} == set(OPTIONS)
    assert len(found) == 18
    retries = {each["type"]: each["options"]["max_retries"] for each in found}
    assert (retries["webhook-dispatch"], retries["pattern-training"]) == (9, 1)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", sorted(OPTIONS))
def test_every_type_is_described_by_what_it_does_takes_and_gives(cli: Cli, name: str) -> None:  # noqa: F811
    found = cli("agents", "describe", name, "--json").json
    assert found["does"].partition("\n")[0].endswith((".", ":"))
    assert found["gives"]
    shown = cli("agents", "describe", name)
    assert f"penstock agents run {name}" in " ".join(shown.out.split())


def test_run_enqueues_a_job_of_a_tenant(cli: Cli) -> None:  # noqa: F811
    words = ("agents", "run", "session-cleanup", "--data", '{"maxAge": 60000}', "--json")
    given = ("--tenant", "acme", "--workspace", "w", "--order-key", "k")
    enqueued = cli(*words, *given).json
    job = cli("jobs", "show", enqueued["job"], "--json").json
    job = job.get("job", job)
    assert (job["tenant_id"], job["workspace_id"], job["order_key"]) == ("acme", "w", "k")
    assert (job["payload"], job["queue"], job["max_retries"]) == ({"maxAge": 60000}, "agents", 2)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "nonsense"), "memory-consolidation"),
        (("run", "session-cleanup", "--data", "{"), "JSON"),
        (("run", "session-cleanup", "--data", '{"maxAge": 0}'), "maxAge"),
        (("describe", "nonsense"), "memory-consolidation"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(cli: Cli, words: tuple[str, ...], said: str) -> None:  # noqa: F811
    answer = cli("agents", *words)
    assert answer.code == 2
    assert answer.says(said)


def test_a_default_schedule_is_rescheduled_at_the_terminal(cli: Cli) -> None:  # noqa: F811
    done = cli("agents", "reschedule", "quota-check", "0 30 * * * *", "--json").json
    assert done["cron"] == "0 30 * * * *"
    shown = cli("schedules", "show", "quota-check", "--json").json
    assert (shown["expression"], shown["by_operator"]) == ("0 30 * * * *", True)
