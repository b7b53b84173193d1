"""Long lists: a page at a time, and found by a part of a name."""

import pytest

from penstock import Penstock
from penstock.server.dashboard import render
from proof.conformance.build import a_job
from tests.server.dashboard.conftest import Browser
from tests.server.dashboard.furnish import a_beat, a_schedule

NAMES = ("Blue-one", "blue-two", "red-three", "red-four", "red-five")


@pytest.fixture
async def many(app: Penstock, server: object, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five of everything that is listed by name, two to a page."""
    monkeypatch.setattr(render, "SHOWN", 2)
    for name in NAMES:
        await app.store.jobs.enqueue([a_job(queue=name)])
        await app.store.schedules.put(a_schedule(name))
        app.store.workers.beat(a_beat(owner=f"host:{name}", name=name))


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("page", ["queues", "workers", "schedules"])
async def test_everything_is_on_one_of_the_pages(browser: Browser, page: str) -> None:
    shown = [await browser.text(f"{page}?page={number}") for number in (1, 2, 3)]
    assert [sum(name in text for text in shown) for name in NAMES] == [1] * len(NAMES)


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize("page", ["queues", "workers", "schedules"])
async def test_names_are_found_by_a_part_of_them_in_any_case(browser: Browser, page: str) -> None:
    found = await browser.text(f"{page}?find=BLUE")
    assert [name in found for name in NAMES] == [True, True, False, False, False]
    assert "matches." in await browser.text(f"{page}?find=green")
