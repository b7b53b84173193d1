import httpx
import pytest

from penstock import Penstock
from penstock.alerts.judge import judge_all
from penstock.model.alert_rules import RULES, AlertSettings
from penstock.testing import drain


@pytest.fixture
async def firing(app: Penstock, http: httpx.AsyncClient) -> httpx.AsyncClient:
    """A client of an installation with eleven dead letters."""
    for _ in range(11):
        await app.enqueue_payload("fail")
    await drain(app)
    await judge_all(app)
    return http


async def test_an_installation_in_order_has_no_alerts(http: httpx.AsyncClient) -> None:
    answer = await http.get("/api/alerts")
    assert answer.json() == {"alerts": [], "judged_at": None}


async def test_alerts_are_listed_with_what_is_wrong(firing: httpx.AsyncClient) -> None:
    answer = (await firing.get("/api/alerts")).json()
    [alert] = answer["alerts"]
    assert answer["judged_at"].endswith("Z")
    assert (alert["name"], alert["state"], alert["severity"]) == (
        "dead_letters",
        "firing",
        "warning",
    )
    assert (alert["value"], alert["threshold"]) == (11, 10)
    assert alert["fired_at"].endswith("Z")
    assert "owed" not in alert
    assert (await firing.get("/api/alerts?state=resolved")).json()["alerts"] == []
    assert (await firing.get("/api/alerts/dead_letters")).json() == alert


async def test_an_alert_is_acknowledged_on_record(firing: httpx.AsyncClient) -> None:
    said = {"note": "known; ask Ann"}
    answer = await firing.post("/api/alerts/dead_letters/acknowledge", json=said)
    assert answer.status_code == 200
    alert = answer.json()
    assert (alert["acknowledged_by"], alert["note"]) == ("local", "known; ask Ann")
    turns = (await firing.get("/api/alerts/dead_letters/history")).json()["turns"]
    assert [(turn["state"], turn["by"]) for turn in turns] == [
        ("firing", "local"),
        ("firing", None),
        ("pending", None),
    ]
    [entry] = (await firing.get("/api/audit?action=alert")).json()["entries"]
    assert (entry["action"], entry["subject"]) == ("alert.acknowledge", "alert:dead_letters")
    assert "Ann" not in str(entry)


async def test_an_alert_that_is_not_there_is_not_found(http: httpx.AsyncClient) -> None:
    for answer in (
        await http.get("/api/alerts/nothing"),
        await http.get("/api/alerts/nothing/history"),
        await http.post("/api/alerts/nothing/acknowledge"),
    ):
        assert (answer.status_code, "'nothing'" in answer.json()["detail"]) == (404, True)


async def test_only_an_alert_that_fires_is_acknowledged(
    app: Penstock, firing: httpx.AsyncClient
) -> None:
    for group in await app.dead.groups():
        await app.dead.resolve(group.id)
    await judge_all(app)
    answer = await firing.post("/api/alerts/dead_letters/acknowledge")
    assert answer.status_code == 409
    assert answer.json()["detail"].startswith("Alert 'dead_letters' is resolved")


async def test_rules_are_told_with_their_routes_and_no_secret(
    app: Penstock, http: httpx.AsyncClient
) -> None:
    routes = {"ops": ("slack://T1/secret-part/x", "${WHOLE}"), "page": "json://u:p@host"}
    app.settings = app.settings.replace(alerts=AlertSettings(routes=routes, route="page"))
    answer = await http.get("/api/alert-rules")
    assert "secret-part" not in answer.text
    found = answer.json()
    assert [rule["name"] for rule in found["rules"]] == [rule.name for rule in RULES]
    assert {rule["route"] for rule in found["rules"]} == {"page"}
    assert found["routes"] == [
        {"name": "ops", "services": ["slack://***", "***"]},
        {"name": "page", "services": ["json://***"]},
    ]
