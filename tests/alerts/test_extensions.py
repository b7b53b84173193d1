"""Alerts as an extension, and rules on what other extensions measure."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from msgspec.structs import replace

from penstock import Penstock, Worker
from penstock.alerts.alerts import Alerts
from penstock.alerts.judge import judge_all, rules_of
from penstock.alerts.pages import places_of
from penstock.app.extensions import installed
from penstock.config import Settings, load_settings
from penstock.extension import Extension
from penstock.model.alert import AlertState
from penstock.model.alert_rules import RULES, AlertSettings, RuleSettings
from penstock.model.errors import InvalidOption
from tests.support import garden
from tests.support.places import Place


@pytest.fixture
async def app(place: Place) -> AsyncIterator[Penstock]:
    made = Penstock(settings=Settings(**place.settings), extensions=[garden.garden])
    async with made:
        yield made


def telling(app: Penstock, **rules: RuleSettings) -> Penstock:
    app.settings = app.settings.replace(alerts=AlertSettings(rules=rules))
    return app


@pytest.mark.every_store
async def test_a_rule_of_an_extension_fires_on_what_it_measures(app: Penstock) -> None:
    await judge_all(app)
    found = await Alerts(app).get("drought")
    assert (found.state, found.severity, found.value) == ("firing", "critical", 40)
    assert found.text == ("How dry the soil is: 40 % (mostly the roses), which is more than 30 %.")
    assert [alert.name for alert in await app.alerts.list()] == ["drought"]  # type: ignore[attr-defined]


async def test_the_settings_change_it_like_one_of_ours(app: Penstock) -> None:
    telling(app, drought=RuleSettings(threshold=50), damp=RuleSettings(enabled=False))
    await judge_all(app)
    assert await Alerts(app).list() == []
    assert {rule.name: rule.threshold for rule in rules_of(app)}["drought"] == 50


async def test_a_rule_of_ones_own_names_the_metric_of_an_extension(app: Penstock) -> None:
    telling(app, parched=RuleSettings(metric="dryness", threshold=10, queue="north"))
    await judge_all(app)
    assert [alert.name for alert in await Alerts(app).list()] == ["drought"], "none in the north"
    telling(app, parched=RuleSettings(metric="dryness", threshold=10))
    await judge_all(app)
    assert (await Alerts(app).get("parched")).state is AlertState.FIRING


def test_an_unknown_metric_is_refused_and_the_known_ones_are_named(app: Penstock) -> None:
    telling(app, odd=RuleSettings(metric="phase_of_the_moon", threshold=1))
    with pytest.raises(InvalidOption, match=r"'phase_of_the_moon'; known.*dryness, queue_depth"):
        rules_of(app)


async def test_a_worker_does_not_start_with_rules_that_nobody_can_judge(app: Penstock) -> None:
    telling(app, odd=RuleSettings(metric="phase_of_the_moon", threshold=1))
    async with asyncio.timeout(10):
        with pytest.raises(InvalidOption, match="known metrics are"):
            await Worker(app).run()


async def test_an_extension_whose_rule_measures_nothing_is_refused(place: Place) -> None:
    [rule] = garden.garden.rules
    app = Penstock(place.url, dispatch=place.dispatch)
    app.extensions.enable(Extension(name="odd", rules=(replace(rule, metric="moon"),)))
    with pytest.raises(InvalidOption, match=r"'moon'.*'drought'"):
        rules_of(app)


async def test_an_alert_stays_as_it_is_while_its_figure_cannot_be_read(
    app: Penstock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await judge_all(app)
    [measured] = garden.garden.readings
    broken = replace(garden.garden, readings=(replace(measured, read=garden.broken),))
    monkeypatch.setitem(vars(app.extensions)["_enabled"], "garden", broken)
    await judge_all(app)
    assert (await Alerts(app).get("drought")).state is AlertState.FIRING


def test_the_page_behind_a_rule_is_that_of_its_reading(app: Penstock) -> None:
    places = places_of(app)
    assert places["drought"][0] == "garden"
    assert places["old_jobs"] == ("jobs?status=queued", "the jobs that wait")


def test_alerts_are_an_installed_extension_that_is_always_on() -> None:
    found = installed()["alerts"]
    assert found.always
    assert found.rules == RULES
    parts = (found.readings, found.passes, found.routes, found.pages, found.commands)
    assert all([*parts, found.metrics, found.concerns])


def test_its_settings_stay_where_they_are(tmp_path: Any) -> None:
    file = tmp_path / "penstock.toml"
    file.write_text('[penstock.alerts.rules.mine]\nmetric = "dryness"\nthreshold = 1\n')
    app = Penstock(settings=load_settings(file, {}), extensions=[garden.garden])
    assert "mine" in {rule.name for rule in rules_of(app)}
