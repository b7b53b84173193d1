from pathlib import Path
from typing import Any

import pytest

from penstock import Dead, Penstock
from penstock.alerts.alerts import Alerts
from penstock.alerts.judge import Critical, judge_all
from penstock.model.alert import AlertState
from penstock.model.alert_rules import AlertSettings, shown
from penstock.model.errors import InvalidOption
from penstock.operate.actor import Actor
from penstock.operate.notices import QUEUE, TYPE, NotDelivered, deliver
from penstock.testing import FakeClock, drain
from tests.support.receiver import APPRISE, Receiver, receiving

pytestmark = [APPRISE, pytest.mark.thorough("postgres", "valkey")]


@pytest.fixture
def routed(app: Penstock, receiver: Receiver) -> Penstock:
    app.settings = app.settings.replace(alerts=AlertSettings(routes={"ops": receiver.route}))

    @app.job
    async def task() -> None:
        raise Dead("broken")

    @app.job(critical=True)
    async def charge() -> None:
        raise Dead("broken")

    return app


async def die(app: Penstock, type_name: str = "task", times: int = 11) -> None:
    for _ in range(times):
        await app.enqueue_payload(type_name)
    await drain(app)


async def resolve(app: Penstock) -> None:
    for group in await app.dead.groups():
        await app.dead.resolve(group.id)


async def notices(app: Penstock) -> list[Any]:
    return await app.find(type=TYPE, limit=100)


@pytest.mark.quick("postgres", "valkey")
async def test_an_alert_is_delivered_acknowledged_and_resolved(
    routed: Penstock, receiver: Receiver, clock: FakeClock
) -> None:
    await die(routed)
    await judge_all(routed)
    assert receiver.titles() == []
    await drain(routed)
    [sent] = list(receiver.got.queue)
    assert sent["title"] == "[warning] dead_letters is firing"
    assert "Open dead letters: 11 dead letters" in sent["message"]
    assert (sent["type"], "Review the dead letters" in sent["message"]) == ("warning", True)
    await Alerts(routed, Actor("ann")).acknowledge("dead_letters", "on it")
    await resolve(routed)
    await judge_all(routed)
    await drain(routed)
    assert receiver.titles()[1:] == ["[resolved] dead_letters"]
    assert (await Alerts(routed).get("dead_letters")).acknowledged_by == "ann"


async def test_a_crash_between_decision_and_delivery_loses_nothing(
    routed: Penstock, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await die(routed)

    async def crash(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("penstock.alerts.alerts.hand_over", crash)
        with pytest.raises(KeyboardInterrupt):
            await judge_all(routed)
    alert = await Alerts(routed).get("dead_letters")
    assert (alert.state, len(alert.owed)) == (AlertState.FIRING, 1)
    assert await notices(routed) == []
    await judge_all(routed)
    await drain(routed)
    assert receiver.titles() == ["[warning] dead_letters is firing"]
    assert (await Alerts(routed).get("dead_letters")).owed == ()


async def test_a_crash_after_the_notice_was_enqueued_tells_nobody_twice(
    routed: Penstock, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    await die(routed)

    def crash(_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("penstock.alerts.alerts.paid", crash)
        with pytest.raises(KeyboardInterrupt):
            await judge_all(routed)
    await drain(routed)
    await judge_all(routed)
    await drain(routed)
    assert receiver.titles() == ["[warning] dead_letters is firing"]


async def test_a_service_that_is_away_is_tried_again(
    routed: Penstock, receiver: Receiver, clock: FakeClock
) -> None:
    receiver.refuses = 503
    await die(routed)
    await judge_all(routed)
    await drain(routed)
    [job] = await notices(routed)
    assert (job.status, job.queue, job.priority) == ("failed", QUEUE, 1)
    assert "Route 'ops' did not take the notice" in job.error
    receiver.refuses = 0
    await drain(routed, clock=clock, through=60)
    assert receiver.titles() == ["[warning] dead_letters is firing"]


async def test_every_destination_of_a_route_has_a_job_of_its_own(
    app: Penstock, routed: Penstock, receiver: Receiver, clock: FakeClock
) -> None:
    with receiving() as other:
        both = {"ops": (receiver.route, other.route)}
        app.settings = app.settings.replace(alerts=AlertSettings(routes=both))
        other.refuses = 503
        await die(app)
        await judge_all(app)
        await drain(app)
        other.refuses = 0
        await drain(app, clock=clock, through=60)
        assert receiver.titles() == other.titles() == ["[warning] dead_letters is firing"]


async def test_an_alert_that_comes_and_goes_is_told_once_in_its_cool_down(
    routed: Penstock, receiver: Receiver, clock: FakeClock
) -> None:
    for _ in range(3):
        await die(routed)
        await judge_all(routed)
        clock.advance(60)
        await resolve(routed)
        await judge_all(routed)
    await drain(routed)
    assert receiver.titles() == ["[warning] dead_letters is firing", "[resolved] dead_letters"]
    await die(routed)
    await judge_all(routed)
    clock.advance(300)
    await judge_all(routed)
    await drain(routed)
    assert receiver.titles()[2:] == ["[warning] dead_letters is firing"]


async def test_nobody_hears_of_an_end_before_they_hear_of_the_beginning(
    routed: Penstock, receiver: Receiver, clock: FakeClock
) -> None:
    receiver.refuses = 503
    await die(routed)
    await judge_all(routed)
    await drain(routed)
    receiver.refuses = 0
    await resolve(routed)
    await judge_all(routed)
    await drain(routed, clock=clock, through=60)
    assert receiver.titles() == ["[warning] dead_letters is firing", "[resolved] dead_letters"]


async def test_each_death_of_a_critical_type_is_told(
    routed: Penstock, receiver: Receiver, clock: FakeClock
) -> None:
    critical = Critical(routed)
    await die(routed, "charge", 1)
    await critical.look()
    await critical.look()
    await die(routed, "charge", 1)
    await critical.look()
    await drain(routed)
    assert receiver.titles() == ["[critical] critical_dead_letter:charge is firing"]
    clock.advance(300)
    await critical.look()
    await drain(routed)
    assert len(receiver.titles()) == 2
    assert "2 dead letters" in list(receiver.got.queue)[1]["message"]
    await resolve(routed)
    await critical.look()
    await drain(routed)
    assert receiver.titles()[2:] == ["[resolved] critical_dead_letter:charge"]


async def test_every_type_may_be_critical_by_the_settings(routed: Penstock) -> None:
    chosen = AlertSettings(critical_types=("*",))
    routed.settings = routed.settings.replace(alerts=chosen)
    await die(routed, "task", 1)
    await Critical(routed).look()
    assert [alert.name for alert in await Alerts(routed).list()] == ["critical_dead_letter"]


async def test_a_notice_holds_nothing_of_the_error(routed: Penstock, receiver: Receiver) -> None:
    @routed.job(critical=True, max_retries=0)
    async def leak() -> None:
        raise ValueError("the card is 4111 of Ann")

    await die(routed, "leak", 1)
    await Critical(routed).look()
    await drain(routed)
    [sent] = list(receiver.got.queue)
    assert "ValueError" in sent["message"]
    assert "Ann" not in sent["message"]


async def test_without_a_route_an_alert_is_only_shown(app: Penstock) -> None:
    @app.job
    async def task() -> None:
        raise Dead("broken")

    await die(app)
    await judge_all(app)
    found = await Alerts(app).get("dead_letters")
    assert (found.state, found.owed) == (AlertState.FIRING, ())
    assert await notices(app) == []


def test_secrets_come_from_the_environment_and_from_files(
    app: Penstock, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "port").write_text(f"{receiver.port}\n")
    monkeypatch.setenv("ALERT_PATH", "secret-path")
    url = f"json://127.0.0.1:${{file:{tmp_path}/port}}/${{ALERT_PATH}}"
    app.settings = app.settings.replace(alerts=AlertSettings(routes={"ops": url}))
    deliver(app, "ops", 0, "title", "body")
    assert receiver.titles() == ["title"]
    assert shown(url) == "json://***"


def test_a_refusal_names_no_secret(
    app: Penstock, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALERT_PATH", "secret-path")
    url = f"json://user:hidden-word@127.0.0.1:{receiver.port}/${{ALERT_PATH}}"
    app.settings = app.settings.replace(alerts=AlertSettings(routes={"ops": url}))
    receiver.refuses = 500
    with pytest.raises(NotDelivered) as refused:
        deliver(app, "ops", 0, "title", "body")
    assert "secret-path" not in str(refused.value)
    assert "hidden-word" not in str(refused.value)
    assert "error=500" in str(refused.value)


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("${NOT_SET}", "a variable that is set"),
        ("json://${file:/not/there}", "a file to read"),
        ("nothing://here", "URLs that apprise knows"),
    ],
)
def test_a_route_that_cannot_be_used_says_why(app: Penstock, url: str, words: str) -> None:
    app.settings = app.settings.replace(alerts=AlertSettings(routes={"ops": url}))
    with pytest.raises(InvalidOption, match=words):
        deliver(app, "ops", 0, "title", "body")
