import asyncio

import pytest

from penstock import Dead, Penstock
from penstock.alerts.alerts import Alerts
from penstock.alerts.judge import Critical, judge_all
from penstock.model.alert_rules import AlertSettings
from penstock.operate.notices import TYPE
from penstock.testing import FakeClock, drain


@pytest.fixture(params=["postgres_store_url", "valkey_url"])
def app(request: pytest.FixtureRequest, clock: FakeClock) -> Penstock:
    made = Penstock(request.getfixturevalue(request.param), clock=clock)
    made.settings = made.settings.replace(
        alerts=AlertSettings(routes={"ops": "json://127.0.0.1:9"}, critical_types=("doomed",))
    )

    @made.job
    async def doomed() -> None:
        raise Dead("broken")

    return made


async def test_alerts_of_a_server_fire_once_and_are_resolved(
    app: Penstock, clock: FakeClock
) -> None:
    async with app:
        for _ in range(11):
            await app.enqueue_payload("doomed")
        await drain(app)
        await asyncio.gather(*(judge_all(app) for _ in range(3)), Critical(app).look())
        firing = {alert.name: alert.state for alert in await Alerts(app).list()}
        assert firing == {"dead_letters": "firing", "critical_dead_letter:doomed": "firing"}
        assert len(await app.find(type=TYPE)) == 2
        for group in await app.dead.groups():
            await app.dead.resolve(group.id)
        await judge_all(app)
        await Critical(app).look()
        assert {alert.state for alert in await Alerts(app).list()} == {"resolved"}
        assert len(await app.find(type=TYPE)) == 4
