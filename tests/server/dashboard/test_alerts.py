import re

from penstock import Penstock
from penstock.alerts.alerts import Alerts
from penstock.model.alert import AlertState
from penstock.model.alert_rules import RULES, Severity
from tests.server.dashboard.conftest import Browser
from tests.server.dashboard.furnish import an_alert, put_alert


async def test_what_fires_stands_above_what_did(browser: Browser, app: Penstock) -> None:
    await put_alert(app, an_alert("dead_letters", severity=Severity.CRITICAL))
    await put_alert(app, an_alert("old_jobs", AlertState.RESOLVED, resolved_at=3))
    text = await browser.text("alerts")
    assert text.index('id="alert-dead_letters"') < text.index('id="past"')
    assert text.index('id="past"') < text.index('id="alert-old_jobs"')
    assert "trouble is-critical" in text


async def test_every_rule_is_listed_with_its_threshold(browser: Browser) -> None:
    text = await browser.text("alerts")
    assert "No alert is firing." in text
    assert re.findall(r'<tr id="rule-(\w+)"', text) == [rule.name for rule in RULES]
    assert "more than 1,000 jobs" in text


async def test_an_alert_is_acknowledged_with_a_note(browser: Browser, app: Penstock) -> None:
    await put_alert(app, an_alert("dead_letters"))
    fields = {"name": "dead_letters", "note": "The mail server is down."}
    text = await browser.follow(await browser.send("alerts/acknowledge", fields))
    assert "dead_letters is acknowledged." in text
    assert "The mail server is down." in text
    assert "alerts/acknowledge" not in text
    found = await Alerts(app).get("dead_letters")
    assert (found.acknowledged_by, found.note) == ("local", "The mail server is down.")
    page = await browser.text("alerts/dead_letters")
    assert page.count("The mail server is down.") == 2
    entries = await app.store.audit.page(0)
    assert [entry.action for entry in entries] == ["alert.acknowledge"]
    assert "mail server" not in entries[0].details


async def test_what_does_not_fire_cannot_be_acknowledged(browser: Browser, app: Penstock) -> None:
    await put_alert(app, an_alert("old_jobs", AlertState.RESOLVED))
    for name in ("old_jobs", "nope"):
        sent = await browser.send("alerts/acknowledge", {"name": name})
        assert "notice bad" in await browser.follow(sent)
    long = await browser.send("alerts/acknowledge", {"name": "old_jobs", "note": "x" * 1_001})
    assert "1,000" in await browser.follow(long)


async def test_an_alert_has_a_history(browser: Browser, app: Penstock) -> None:
    await put_alert(app, an_alert("dead_letters"))
    text = await browser.text("alerts/dead_letters")
    assert "12 dead letters" in text
    assert text.index("is-firing") < text.index("is-pending")
    assert (await browser.open("alerts/nope")).status_code == 404
