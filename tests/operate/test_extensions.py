"""Parts of extensions that fail take nothing else along."""

import asyncio
from typing import Any

import pytest
from structlog.testing import capture_logs

from penstock import Penstock
from penstock.extension import Extension
from penstock.operate import extensions
from penstock.operate.extensions import read_part
from penstock.operate.health import HealthStatus, check_health
from tests.support import garden


async def hang(app: Any) -> None:
    await asyncio.Event().wait()


async def test_a_part_that_raises_is_left_out_and_told_once_a_minute() -> None:
    extension = Extension(name="raises")
    with capture_logs() as lines:
        for _ in range(2):
            assert await read_part(extension, "figure", garden.broken, None) is None
    [line] = lines
    assert (line["event"], line["part"]) == ("extension_failed", "raises.figure")
    assert line["error"] == "no water"


async def test_a_part_that_hangs_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extensions, "SECONDS", 0.001)
    assert await read_part(Extension(name="hangs"), "figure", hang, None) is None


async def test_a_missing_module_is_left_out() -> None:
    assert await read_part(Extension(name="gone"), "figure", "no_such_module:x", None) is None


async def test_health_is_as_good_as_the_checks_of_extensions() -> None:
    bad = Extension(name="bad", checks={"look": garden.broken, "spade": garden.tools})
    app = Penstock("sqlite:///:memory:", extensions=[garden.garden, bad])
    async with app:
        found = await check_health(app.store, app.settings.replace(min_workers=0), app)
        alone = await check_health(app.store, app.settings.replace(min_workers=0))
    assert found.checks["garden.soil"].figures == {"water": 3}
    assert found.checks["bad.look"].status is HealthStatus.DEGRADED
    assert "no water" not in found.checks["bad.look"].detail
    assert (found.status, alone.status) == (HealthStatus.UNHEALTHY, HealthStatus.HEALTHY)
