from pathlib import Path

import httpx
import pytest

from penstock import Dead, Penstock
from penstock.alerts.delivery import Delivery
from penstock.alerts.judge import Critical, judge_all
from penstock.config import Settings
from penstock.model.alert_rules import AlertSettings
from penstock.operate.notices import TYPE
from penstock.testing import drain
from proof.conformance.build import dead_job
from tests.support.receiver import APPRISE, Receiver
from tests.support.workers import beat

pytestmark = APPRISE


@pytest.fixture
def app(tmp_path: Path, receiver: Receiver) -> Penstock:
    chosen = AlertSettings(routes={"ops": receiver.route})
    url = f"sqlite:///{tmp_path}/jobs.db"
    made = Penstock(settings=Settings(url=url, requests_per_minute=0, alerts=chosen))

    @made.job
    async def fail() -> None:
        raise Dead("broken")

    return made


async def break_down(app: Penstock) -> None:
    for _ in range(11):
        await app.enqueue_payload("fail")
    await drain(app)
    await judge_all(app)


async def test_a_real_alert_reaches_a_person_is_acknowledged_and_resolved(
    app: Penstock, http: httpx.AsyncClient, receiver: Receiver
) -> None:
    await break_down(app)
    await Delivery(app).run_once()
    assert receiver.titles() == ["[warning] dead_letters is firing"]
    said = {"note": "on it"}
    answer = await http.post("/api/alerts/dead_letters/acknowledge", json=said)
    assert answer.json()["acknowledged_by"] == "local"
    [group] = (await http.get("/api/dead-letters/groups")).json()["groups"]
    answer = await http.post(f"/api/dead-letters/groups/{group['id']}/resolve", json={})
    assert answer.status_code == 200, answer.text
    await judge_all(app)
    await Delivery(app).run_once()
    assert receiver.titles()[1:] == ["[resolved] dead_letters"]
    [alert] = (await http.get("/api/alerts")).json()["alerts"]
    assert (alert["state"], alert["note"]) == ("resolved", "on it")


async def test_the_server_leaves_notices_to_a_worker_that_lives(
    app: Penstock, http: httpx.AsyncClient, receiver: Receiver
) -> None:
    await break_down(app)
    app.store.workers.beat(beat(types=("fail", TYPE)))
    await Delivery(app).run_once()
    assert receiver.titles() == []
    app.store.workers.beat(beat(types=("fail", TYPE), queues=("mail",)))
    await Delivery(app).run_once()
    assert receiver.titles() == ["[warning] dead_letters is firing"]


async def test_an_application_without_types_delivers_as_well(
    app: Penstock, http: httpx.AsyncClient, receiver: Receiver
) -> None:
    await break_down(app)
    other = Penstock(settings=app.settings)
    async with other:
        await Delivery(other).run_once()
    assert receiver.titles() == ["[warning] dead_letters is firing"]


async def test_other_jobs_are_left_alone(
    app: Penstock, http: httpx.AsyncClient, receiver: Receiver
) -> None:
    await break_down(app)
    handle = await app.enqueue_payload("fail")
    await Delivery(app).run_once()
    assert (await handle.get()).status == "queued"


async def test_a_notice_that_is_given_up_is_an_alert_told_over_another_route(
    app: Penstock, http: httpx.AsyncClient, receiver: Receiver
) -> None:
    routes: dict[str, str | tuple[str, ...]] = {
        "ops": "json://127.0.0.1:1/",
        "page": receiver.route,
    }
    app.settings = app.settings.replace(alerts=AlertSettings(routes=routes))
    await dead_job(app.store, type=TYPE)
    await Critical(app).look()
    await Delivery(app).run_once()
    assert receiver.titles() == ["[critical] critical_dead_letter:penstock.alert is firing"]


async def test_a_notice_that_is_given_up_makes_no_other_where_there_is_one_route(
    app: Penstock, http: httpx.AsyncClient, receiver: Receiver
) -> None:
    await dead_job(app.store, type=TYPE)
    await Critical(app).look()
    [alert] = (await http.get("/api/alerts")).json()["alerts"]
    assert (alert["name"], alert["state"]) == ("critical_dead_letter:penstock.alert", "firing")
    assert await app.find(type=TYPE, status="queued") == []


async def test_critical_rules_have_a_route_of_their_own(receiver: Receiver) -> None:
    chosen = AlertSettings(
        routes={"ops": receiver.route, "page": receiver.route}, critical_route="page"
    )
    routes = {rule.severity.value: rule.route for rule in chosen.standing()}
    assert routes == {"warning": "ops", "critical": "page"}
    with pytest.raises(ValueError, match="'critical_route' names the route 'gone'"):
        AlertSettings(routes={"ops": receiver.route}, critical_route="gone")
