import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from penstock import Penstock
from penstock.operate.dead import RESOLUTIONS
from penstock.store.contract import Resolution
from penstock.testing import drain
from proof.conformance.build import dead_job

pytestmark = pytest.mark.thorough("postgres+redis", "postgres", "valkey")

DEAD = "/api/dead-letters"


@pytest.fixture
async def dead(app: Penstock, http: AsyncClient) -> list[str]:
    """Three jobs that died of the same error, the oldest first."""
    jobs = [{"type": "fail", "payload": {"text": "no luck"}}] * 3
    ids = [each["id"] for each in (await http.post("/api/jobs", json=jobs)).json()]
    await drain(app)
    return ids


@pytest.fixture
async def group(dead: list[str], http: AsyncClient) -> str:
    """Their group."""
    (found,) = (await http.get(f"{DEAD}/groups")).json()["groups"]
    assert (found["count"], found["open"], found["type"]) == (3, 3, "fail")
    return str(found["id"])


async def test_letters_are_listed_by_group_page_by_page(
    http: AsyncClient, dead: list[str], group: str
) -> None:
    query = {"group": group[:6], "limit": 2}
    first = (await http.get(DEAD, params=query)).json()
    rest = (await http.get(DEAD, params={**query, "before": first["next"]})).json()
    letters = first["letters"] + rest["letters"]
    assert [letter["job_id"] for letter in letters] == dead[::-1]
    assert rest["next"] is None
    assert {letter["group"] for letter in letters} == {group}


@pytest.mark.every_store
@pytest.mark.quick("postgres+redis", "postgres", "valkey")
async def test_groups_are_listed_page_by_page(app: Penstock, http: AsyncClient) -> None:
    for place in range(5):
        await dead_job(app.store, type=f"t{place}")
    seen: list[str] = []
    query: dict[str, object] = {"limit": 2}
    while True:
        page = (await http.get(f"{DEAD}/groups", params=query)).json()
        seen += [group["type"] for group in page["groups"]]
        if page["next"] is None:
            break
        query["before"] = page["next"]
    assert seen == ["t4", "t3", "t2", "t1", "t0"]


async def test_a_letter_is_shown_with_how_it_died(
    http: AsyncClient, dead: list[str], group: str
) -> None:
    shown = (await http.get(f"{DEAD}/{dead[0]}")).json()
    assert (shown["error"], shown["alike"]["id"]) == ("ValueError: no luck", group)
    assert shown["snapshot"]["payload"] == {"text": "no luck"}
    assert [run["status"] for run in shown["executions"]] == ["dead"]
    assert "ValueError" in shown["stack"]
    assert shown["amended"] is None


@pytest.mark.every_store
async def test_canaries_go_ahead_and_the_rest_follow_once_they_completed(
    app: Penstock, http: AsyncClient, dead: list[str], group: str
) -> None:
    path = f"{DEAD}/groups/{group}"
    replayed = (await http.post(f"{path}/replay", json={"canary": 1})).json()
    assert replayed == {"done": [dead[2]], "refused": {}}
    early = await http.post(f"{path}/release")
    assert early.status_code == 409
    await drain(app)
    canaries = (await http.get(f"{path}/canaries")).json()
    assert canaries == {"completed": [], "failed": [dead[2]], "unfinished": []}
    forced = await http.post(f"{path}/release", json={"rate": "1/min", "force": True})
    assert set(forced.json()["done"]) == set(dead)
    jobs = [await app.get(job_id) for job_id in forced.json()["done"]]
    assert jobs[1].scheduled_at - jobs[0].scheduled_at == 60_000


@pytest.mark.every_store
async def test_letters_are_resolved_one_by_one_and_as_a_group(
    http: AsyncClient, dead: list[str], group: str
) -> None:
    noted = {"resolution": "investigating", "notes": "the mail server moved"}
    one = await http.post(f"{DEAD}/{dead[0]}/resolve", json=noted)
    assert one.json() == {"resolution": "investigating", "ids": [dead[0]]}
    shown = (await http.get(f"{DEAD}/{dead[0]}")).json()
    assert (shown["notes"], shown["resolved_by"]) == ("the mail server moved", "local")
    rest = await http.post(f"{DEAD}/groups/{group}/resolve", json={"resolution": "ignored"})
    assert set(rest.json()["ids"]) == set(dead)
    assert (await http.get(f"{DEAD}/groups")).json()["groups"] == []
    closed = (await http.get(f"{DEAD}/groups?closed=true")).json()["groups"]
    assert [each["open"] for each in closed] == [0]
    entries = (await http.get("/api/audit?action=dead")).json()["entries"]
    assert [entry["action"] for entry in entries] == ["dead.resolve", "dead.resolve"]
    assert "mail server" not in str(entries)


async def test_a_dead_job_gets_other_arguments_and_runs_again(
    app: Penstock, http: AsyncClient, dead: list[str]
) -> None:
    path = f"{DEAD}/{dead[0]}/amend"
    assert (await http.post(path, json={"arguments": {"text": 1}})).status_code == 422
    amended = await http.post(path, json={"arguments": {"text": "other"}})
    assert amended.json()["payload"] == {"text": "other"}
    shown = (await http.get(f"{DEAD}/{dead[0]}")).json()
    assert shown["amended"] == {"text": "other"}
    again = await http.post(path, json={"payload": {"text": "third"}, "requeue": True})
    assert again.json()["status"] in ("pending", "queued")
    (entry, *_) = (await http.get("/api/audit?action=job.amend")).json()["entries"]
    assert entry["details"]["requeue"] is True
    assert "third" not in str(entry)


@pytest.mark.every_store
async def test_letters_are_purged_one_by_one_and_as_a_group(
    app: Penstock, http: AsyncClient, dead: list[str], group: str
) -> None:
    assert (await http.delete(f"{DEAD}/{dead[0]}")).json() == {"purged": 1}
    assert (await http.get(f"/api/jobs/{dead[0]}")).status_code == 404
    await app.requeue(dead[1])
    assert (await http.delete(f"{DEAD}/{dead[1]}")).status_code == 409
    assert (await http.delete(f"{DEAD}/groups/{group}")).json() == {"purged": 1}
    assert (await http.delete(f"{DEAD}/{dead[2]}")).status_code == 404


async def test_an_unknown_group_or_letter_is_not_found(http: AsyncClient) -> None:
    for path in ("groups/zzz", "groups/zzz/canaries", "01JD3Z6K3V9M0Q2T4W6Y8A0C2E", "zzz"):
        assert (await http.get(f"{DEAD}/{path}")).status_code == 404


async def test_letters_are_listed_by_every_word_for_where_somebody_stands(
    app: Penstock, http: AsyncClient, server: FastAPI
) -> None:
    ids = [await dead_job(app.store, type="fail") for _ in range(4)]
    for job_id, resolution in zip(ids, Resolution, strict=True):
        await app.store.dead.resolve([job_id], resolution, notes=None, by=None)

    async def found(word: str) -> list[int]:
        letters = (await http.get(f"{DEAD}?resolution={word}")).json()["letters"]
        return [ids.index(each["job_id"]) for each in letters]

    assert await found("open") == [1, 0]
    assert [await found(word) for word in Resolution] == [[0], [1], [2], [3]]
    assert (await http.get(f"{DEAD}?resolution=settled")).status_code == 422
    route = server.openapi()["paths"][DEAD]["get"]
    [schema] = [each["schema"] for each in route["parameters"] if each["name"] == "resolution"]
    assert tuple(schema["anyOf"][0]["enum"]) == RESOLUTIONS


async def test_letters_are_counted_and_purged_by_a_filter(
    http: AsyncClient, dead: list[str]
) -> None:
    await http.post(f"{DEAD}/{dead[0]}/resolve", json={"resolution": "ignored"})
    which = {"type": "fail", "resolution": "ignored"}
    counted = await http.post(f"{DEAD}/purge", json=which | {"dry_run": True})
    assert counted.json() == {"matched": 1, "purged": 0}
    assert (await http.post(f"{DEAD}/purge", json=which)).json() == {"matched": 1, "purged": 1}
    left = (await http.get(DEAD)).json()["letters"]
    assert [letter["job_id"] for letter in left] == dead[:0:-1]
    for body in ({}, {"resolution": "gone"}, {"older_than": -1}, {"colour": "red"}):
        assert (await http.post(f"{DEAD}/purge", json=body)).status_code == 422
