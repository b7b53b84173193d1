import asyncio
from pathlib import Path

import pytest

from penstock import Penstock
from penstock.alerts.judge import judge_all
from penstock.model.alert_rules import RULES
from tests.support.receiver import receiving

from .conftest import Cli

SETTINGS = """
[penstock.alerts]
route = "ops"
[penstock.alerts.routes]
ops = "{url}"
page = ["json://${{file:secret}}"]
[penstock.alerts.rules.dead_letters]
threshold = 1
[penstock.alerts.rules.old_jobs]
enabled = false
[penstock.alerts.rules.mail_waits]
metric = "oldest_job"
queue = "mail"
threshold = 600
"""


@pytest.fixture
def firing(shopped: Cli, tmp_path: Path) -> Cli:
    """The command line on a store with two dead letters, where two are too many."""
    (tmp_path / "penstock.toml").write_text(SETTINGS.format(url="json://127.0.0.1:9/secret-part"))

    shopped("enqueue", "greet", "--payload", '{"name": "ada"}')

    async def judge() -> None:
        async with Penstock() as app:
            await judge_all(app)

    asyncio.run(judge())
    return shopped


def test_alerts_that_stand_are_listed(firing: Cli) -> None:
    names = [found["name"] for found in firing("alerts", "ls", "--json").json]
    assert names == ["dead_letters", "unserved_jobs"]
    out = firing("alerts", "ls").out
    assert "dead_letters" in out
    assert "firing" in out


def test_a_store_without_alerts_says_so(shopped: Cli) -> None:
    assert shopped("alerts", "ls").out == "No alerts yet.\n"
    assert shopped("alerts", "ls", "--json").json == []


def test_an_alert_is_acknowledged_on_record(firing: Cli) -> None:
    answer = firing("alerts", "ack", "dead_letters", "--note", "known")
    assert (answer.code, "is acknowledged by cli:" in answer.out) == (0, True)
    found = firing("alerts", "show", "dead_letters", "--json").json
    assert found["note"] == "known"
    assert [turn["state"] for turn in found["history"]] == ["firing", "firing", "pending"]
    assert "known" in firing("alerts", "show", "dead_letters").out
    [entry] = firing("audit", "ls", "--json").json
    assert (entry["action"], entry["subject"]) == ("alert.acknowledge", "alert:dead_letters")


def test_an_alert_that_is_not_there_or_does_not_fire_is_refused(firing: Cli) -> None:
    answer = firing("alerts", "ack", "nothing")
    assert (answer.code, answer.says("no alert 'nothing'")) == (3, True)
    answer = firing("alerts", "ack", "unserved_jobs")
    assert (answer.code, answer.says("is pending")) == (2, True)
    assert firing("alerts", "show", "nothing").code == 3


def test_rules_are_listed_as_the_settings_have_them(firing: Cli) -> None:
    found = firing("alerts", "rules", "--json").json
    names = [rule["name"] for rule in found["rules"]]
    assert names == [rule.name for rule in RULES if rule.name != "old_jobs"] + ["mail_waits"]
    assert all(rule["meaning"] and rule["unit"] for rule in found["rules"])
    assert found["routes"] == [
        {"name": "ops", "services": ["json://***"]},
        {"name": "page", "services": ["json://***"]},
    ]
    out = firing("alerts", "rules").out
    assert "mail_waits" in out
    assert "secret-part" not in out


@pytest.mark.filterwarnings("ignore:'imghdr' is deprecated:DeprecationWarning")
def test_a_test_says_which_notices_arrived(cli: Cli, tmp_path: Path) -> None:
    with receiving() as receiver:
        (tmp_path / "penstock.toml").write_text(SETTINGS.format(url=receiver.route))
        answer = cli("alerts", "test", "--route", "ops")
        assert (answer.code, answer.out) == (0, "ops json://***: delivered\n")
        answer = cli("alerts", "test")
        assert (answer.code, answer.says("1 notice of 2 did not arrive")) == (1, True)
        assert "page json://***: Option 'route'" in answer.out
        assert receiver.titles() == ["A test of Penstock's alerts"] * 2


def test_a_test_without_routes_is_refused(cli: Cli, tmp_path: Path) -> None:
    assert cli("alerts", "test").says("No route is named")
    answer = cli("alerts", "test", "--route", "ops")
    assert (answer.code, answer.says("no route 'ops'")) == (3, True)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ('route = "ops"', "names the route 'ops'"),
        ('routes = { ops = "no url" }', "must be made of URLs"),
        ("[penstock.alerts.rules.mine]\nthreshold = 1", "needs a metric and a threshold"),
        ("[penstock.alerts.rules.slow_jobs]\nlimit = 1", "unknown field `limit`"),
        ('[penstock.alerts.rules.slow_jobs]\nmetric = "queue_depth"', "measures duration_p95"),
        ('[penstock.alerts.rules.slow_jobs]\nthreshold = "many"', "Expected `float"),
        ('[penstock.alerts.rules.dead_letters]\nqueue = "mail"', "no queue narrows down"),
        ("[penstock.alerts.rules.Mine]\nenabled = false", "a-z, 0-9 and _"),
    ],
)
def test_bad_settings_are_one_sentence(cli: Cli, tmp_path: Path, text: str, part: str) -> None:
    (tmp_path / "penstock.toml").write_text(f"[penstock.alerts]\n{text}\n")
    answer = cli("alerts", "rules")
    assert answer.code == 2
    assert answer.says("'alerts'", part)


def test_bad_settings_show_no_secret(cli: Cli, tmp_path: Path) -> None:
    text = '[penstock.alerts]\nroute = "x"\nroutes = { ops = "slack://hidden" }\n'
    (tmp_path / "penstock.toml").write_text(text)
    assert "hidden" not in cli("alerts", "rules").err


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("--min", "5", "--max", "4"), "at most --max, which is 4"),
        (("--up-depth", "5", "--down-depth", "6"), "at most --up-depth 5"),
        (("--up-wait", "soon"), "a span such as"),
        (("--interval", "0"), "more than 0"),
        (("--types", "unknown"), "known types are"),
    ],
)
def test_autoscaling_refuses_what_cannot_be(cli: Cli, words: tuple[str, ...], part: str) -> None:
    answer = cli("autoscale", "tests.cli.shop:app", *words)
    assert answer.code == 2
    assert answer.says(part)
