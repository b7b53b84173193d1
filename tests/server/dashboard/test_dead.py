import asyncio
import re
from typing import Any

from fastapi import FastAPI

from penstock import Penstock
from penstock.model.states import Status
from penstock.server.access.identity import Scope
from penstock.store.contract import Resolution
from penstock.testing import drain
from proof.conformance.build import dead_job
from tests.server.dashboard.conftest import Browser
from tests.server.dashboard.furnish import bury


async def group_of(app: Penstock, job_id: str) -> str:
    letter = await app.store.dead.get(job_id)
    assert letter is not None
    return letter.group


async def actions(app: Penstock) -> list[str]:
    return [entry.action for entry in await app.store.audit.page(0, 1_000)]


async def test_what_died_of_the_same_error_stands_together(browser: Browser, app: Penstock) -> None:
    await bury(app, 12, message="no such address")
    [first, *_] = await bury(app, 3, type="import", message="no such file")
    text = await browser.text("dead")
    assert "15 open</a>, in 2 groups" in text
    groups = re.findall(r'<tr id="group-(\w+)"', text)
    assert groups[0] == await group_of(app, first)
    assert re.findall(r'<td class="number"[^>]*><a [^>]*>(\d+)</a>', text) == ["3", "3", "12", "12"]
    assert 'id="group-' not in await browser.text("dead?type=nothing")


async def test_open_letters_are_one_number_everywhere(browser: Browser, app: Penstock) -> None:
    ids = await bury(app, 5)
    await app.store.dead.resolve(ids[:1], Resolution.INVESTIGATING, notes=None, by=None)
    await app.store.dead.resolve(ids[1:2], Resolution.IGNORED, notes=None, by=None)
    page = await browser.text("dead")
    assert "4 open</a>, in 1 group" in page
    [behind] = re.findall(r'href="/([^"]*)">4 open</a>', page)
    assert (await browser.text(behind)).count('<tr id="letter-') == 4
    overview = await browser.text("")
    assert re.search(r'class="value" href="[^"]*dead">4</a>', overview)
    assert '<span>Dead letters</span><span class="count bad">4</span>' in overview
    assert "\npenstock_dead_letters 4.0\n" in await browser.text("metrics")
    health = (await browser.open("api/health")).json()
    assert health["details"]["dead_letters"] == 4


async def test_a_closed_group_is_shown_when_asked_for(browser: Browser, app: Penstock) -> None:
    ids = await bury(app, 2)
    await app.store.dead.resolve(ids, Resolution.RESOLVED, notes=None, by=None)
    assert 'id="group-' not in await browser.text("dead")
    assert 'id="group-' in await browser.text("dead?closed=true")


async def test_canaries_are_replayed_and_their_fate_is_seen(
    browser: Browser, app: Penstock
) -> None:
    ids = await bury(app, 5)
    place = f"dead/groups/{await group_of(app, ids[0])}"
    text = await browser.follow(await browser.send(f"{place}/replay", {"canary": "2"}))
    assert "2 jobs run as canaries." in text
    assert "2 not finished" in text
    assert set(re.findall(r'id="canary-(\w+)"', text)) == set(ids[-2:])
    refused = await browser.follow(await browser.send(f"{place}/release", {"rate": "10/s"}))
    assert "notice bad" in refused
    assert (await app.get(ids[0])).status is Status.DEAD_LETTER
    await drain(app)
    fragment = (await browser.open(place, headers={"HX-Request": "true"})).text
    assert "2 completed" in fragment
    assert "<html" not in fragment
    text = await browser.follow(await browser.send(f"{place}/release", {"rate": "100/min"}))
    assert "3 jobs released." in text
    assert await actions(app) == [
        "dead.replay",
        "dead.release",
        "dead.release.refused",
        "dead.release",
    ]


async def test_a_release_goes_on_over_unproven_canaries_if_somebody_insists(
    browser: Browser, app: Penstock
) -> None:
    ids = await bury(app, 3)
    place = f"dead/groups/{await group_of(app, ids[0])}"
    await browser.send(f"{place}/replay", {"canary": "1"})
    assert 'name="force"' in await browser.text(place)
    text = await browser.follow(await browser.send(f"{place}/release", {"force": "yes"}))
    assert "2 jobs released." in text


async def test_a_group_is_settled_with_notes(browser: Browser, app: Penstock) -> None:
    ids = await bury(app, 3)
    place = f"dead/groups/{await group_of(app, ids[0])}"
    for resolution in ("investigating", "ignored"):
        fields = {"resolution": resolution, "notes": "The address was wrong."}
        text = await browser.follow(await browser.send(f"{place}/resolve", fields))
        assert "The resolution of 3 dead letters is saved." in text
        assert "The address was wrong." in text
    letter = await app.store.dead.get(ids[0])
    assert letter is not None
    assert (letter.resolution, letter.resolved_by) == ("ignored", "local")
    wrong = await browser.send(f"{place}/resolve", {"resolution": "forgotten"})
    assert "notice bad" in await browser.follow(wrong)
    long = await browser.send(f"{place}/resolve", {"notes": "x" * 10_001})
    assert "10,000" in await browser.follow(long)
    details = [entry.details for entry in await app.store.audit.page(0, 1_000)]
    assert not any("address" in each for each in details)


async def test_a_group_is_deleted_only_after_a_question(browser: Browser, app: Penstock) -> None:
    ids = await bury(app, 3)
    place = f"dead/groups/{await group_of(app, ids[0])}"
    question = await browser.text(f"{place}/purge")
    assert "Delete 3 dead letters for good?" in question
    assert await app.store.dead.get(ids[0]) is not None
    text = await browser.follow(await browser.send(f"{place}/purge"))
    assert "3 dead letters deleted for good." in text
    assert await app.store.dead.find() == []
    assert (await browser.open(place)).status_code == 404


async def test_a_letter_shows_the_job_as_it_died(browser: Browser, app: Penstock) -> None:
    [job_id] = await bury(app, payload='{"to": "nobody"}')
    text = await browser.text(f"dead/letters/{job_id}")
    for words in ("it broke", "Traceback: it broke", "Payload when it died", "nobody", "UTC"):
        assert words in text
    assert (await browser.open("dead/letters/nonsense")).status_code == 404


async def test_arguments_are_corrected_and_the_job_runs_again(
    browser: Browser, app: Penstock
) -> None:
    [job_id] = await bury(app, payload='{"to": "nobody"}')
    place = f"dead/letters/{job_id}"
    text = await browser.follow(
        await browser.send(f"{place}/amend", {"payload": '{"to": "somebody"}'})
    )
    assert "Corrected payload" in text
    assert text.index("nobody") < text.index("somebody")
    assert (await app.get(job_id)).status is Status.DEAD_LETTER
    fields = {"payload": '{"to": "ann"}', "requeue": "yes"}
    assert "and the job requeued" in await browser.follow(
        await browser.send(f"{place}/amend", fields)
    )
    job = await app.get(job_id)
    assert (job.status, job.payload) == (Status.PENDING, '{"to":"ann"}')
    assert await actions(app) == ["job.amend", "job.amend"]


async def test_arguments_that_do_not_fit_are_told_at_the_field(
    browser: Browser, app: Penstock
) -> None:
    [job_id] = await bury(app)
    for payload, why in (("{", "not JSON"), ('{"to": 7}', "expected str"), ("[]", "object")):
        answer = await browser.send(f"dead/letters/{job_id}/amend", {"payload": payload})
        assert answer.status_code == 422
        found = re.search(r'id="wrong-payload">([^<]*)<', answer.text)
        assert found is not None
        assert why in found[1]
    assert (await app.get(job_id)).payload == '{"to": "a"}'


async def test_a_letter_of_an_unknown_type_offers_no_correction(
    browser: Browser, app: Penstock
) -> None:
    [job_id] = await bury(app, type="gone")
    text = await browser.text(f"dead/letters/{job_id}")
    assert "does not know the type gone" in text
    assert "/amend" not in text


async def test_a_letter_is_requeued_settled_and_deleted(browser: Browser, app: Penstock) -> None:
    first, second = await bury(app, 2)
    text = await browser.follow(await browser.send(f"dead/letters/{first}/requeue"))
    assert "The job is requeued." in text
    fields = {"resolution": "resolved", "notes": "told them"}
    text = await browser.follow(await browser.send(f"dead/letters/{second}/resolve", fields))
    assert "told them" in text
    assert "Delete this dead letter for good?" in await browser.text(f"dead/letters/{second}/purge")
    await browser.follow(await browser.send(f"dead/letters/{second}/purge"))
    assert await app.store.dead.get(second) is None


async def test_letters_come_in_pages(browser: Browser, app: Penstock) -> None:
    ids = await bury(app, 120)
    for start in ("dead/letters?type=mail.send", f"dead/groups/{await group_of(app, ids[0])}"):
        seen = await browser.walk(start, r'<tr id="letter-(\w+)"')
        assert seen == sorted(ids, reverse=True)
    assert (await browser.open("dead/letters?before=nonsense")).status_code == 422


async def test_every_group_is_reached_page_by_page(browser: Browser, app: Penstock) -> None:
    died = await asyncio.gather(*(bury(app, type=f"type{n}") for n in range(105)))
    groups = {await group_of(app, job_id) for [job_id] in died}
    seen = await browser.walk("dead", r'<tr id="group-(\w+)"')
    assert len(seen) == 105
    assert set(seen) == groups
    text = await browser.text("dead")
    assert "100 open on this page, in 100 groups" in text
    assert (await browser.open("dead?before=nonsense")).status_code == 422


async def test_a_group_shared_by_tenants_shows_each_their_own(
    log_in: Any, app: Penstock, server: FastAPI
) -> None:
    [own] = await bury(app, tenant_id="north")
    [other] = await bury(app, tenant_id="south")
    browser: Browser = await log_in(Scope.OPERATE, tenant_id="north")
    place = f"dead/groups/{await group_of(app, own)}"
    text = await browser.text(place)
    assert own in text
    assert other not in text
    await browser.send(f"{place}/purge")
    assert await app.store.dead.get(own) is None
    assert await app.store.dead.get(other) is not None


async def test_letters_are_purged_by_a_filter(browser: Browser, app: Penstock) -> None:
    one, two = [await dead_job(app.store, type=f"t{number}") for number in range(2)]
    assert 'action="/dead/purge"' in await browser.text("dead/letters?type=t0")
    question = await browser.text("dead/purge?type=t0&resolution=open&days=0")
    assert "Delete 1 dead letter for good?" in question
    sent = await browser.send("dead/purge", {"type": "t0", "resolution": "open", "days": ""})
    assert "1 dead letter deleted for good." in await browser.follow(sent)
    assert [letter.job_id for letter in await app.store.dead.find()] == [two]
    assert await app.store.reader.get([one]) == []
