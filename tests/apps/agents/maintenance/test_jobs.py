"""The four jobs of maintenance from their triggers to their effects: once, twice, and killed."""

import json
from hashlib import sha256
from typing import Any
from zipfile import ZipFile

import httpx
import pytest
from msgspec.structs import replace

from penstock import Penstock
from penstock.model.audit import GENESIS, Entry, first_break
from penstock.model.errors import InvalidOption
from penstock.model.states import Status
from penstock.operate.actor import Operator
from penstock.operate.journal import Journal
from penstock.server.app import create_server
from penstock.store.contract import Claim
from penstock.testing import FakeClock, drain
from tests.apps.agents.killing import Stage, twice_and_killed
from tests.apps.agents.maintenance.plays import (
    Checking,
    Deleting,
    ExportingAudit,
    ExportingData,
    people,
)
from tests.apps.agents.raw import change, rows

pytestmark = pytest.mark.thorough("postgres")


def read_lines(data: bytes) -> list[Any]:
    return [json.loads(line) for line in data.splitlines()]


@pytest.mark.thorough
async def test_a_check_of_quotas_can_be_repeated(stage: Stage) -> None:
    standings, weighed, tokens = await twice_and_killed(stage, Checking())
    assert standings == [("north", "storage", "blocked")]
    assert weighed == {"north": True, "south": True}
    assert tokens == [("south", 0.0)], "what nobody settled was given back"


@pytest.mark.thorough
async def test_an_export_of_data_can_be_repeated(stage: Stage) -> None:
    _, whole, status = await twice_and_killed(stage, ExportingData())
    assert (whole, status) == (True, "done")


@pytest.mark.thorough
async def test_an_export_of_the_audit_log_can_be_repeated(stage: Stage) -> None:
    _, whole, status = await twice_and_killed(stage, ExportingAudit())
    assert (whole, status) == (True, "done")


@pytest.mark.thorough
async def test_a_deletion_can_be_repeated(stage: Stage) -> None:
    sessions, turns, told, certificate = await twice_and_killed(stage, Deleting())
    assert sessions == [("north-bob",), ("south-ann",)]
    assert turns == sessions
    assert told == {(None, "done")}
    assert certificate["found"] == {"agents_sessions": 1, "agents_turns": 1, "jobs": 1}
    assert certificate["left"] == {}


@pytest.mark.quick("postgres")
async def test_an_archive_holds_all_of_a_tenant_and_nothing_of_another(
    agents: Penstock, clock: FakeClock
) -> None:
    await people(agents)
    await agents.agents.memories.add("Ann likes tea.", tenant="north", user="ann")
    webhook = await agents.agents.webhooks.add(
        "https://example.com/", tenant="north", owner="ann", topics=["job.completed"]
    )
    server = create_server(agents, trusts_callers=True)
    transport = httpx.ASGITransport(server)
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        told = {"type": "data-export", "payload": {}, "tenant": "north"}
        answer = await http.post("/api/jobs", json=told)
        assert answer.status_code in (200, 201), answer.text
    await drain(agents)
    [export] = await agents.agents.exports.list("north")
    with ZipFile(agents.agents.exports.path(export)) as archive:
        manifest = json.loads(archive.read("manifest.json"))
        files = {name: archive.read(name) for name in archive.namelist()}
    del files["manifest.json"]
    assert {name: sha256(data).hexdigest() for name, data in files.items()} == {
        name: told["sha256"] for name, told in manifest["files"].items()
    }
    assert {name: len(read_lines(data)) for name, data in files.items()} == export.contents
    sessions = read_lines(files["tables/agents_sessions.jsonl"])
    assert {session["user_id"] for session in sessions} == {"ann", "bob"}
    assert read_lines(files["tables/agents_memories.jsonl"])[0]["content"] == "Ann likes tea."
    [vector] = read_lines(files["tables/agents_vectors.jsonl"])
    assert len(vector["vector"]) > 100
    assert "south" not in str(files.values())
    assert webhook.secret not in str(files.values())
    assert manifest["leftOut"] == {"agents_webhooks": ["secret", "former_secret"]}


async def test_an_archive_of_a_person_holds_what_is_theirs(agents: Penstock) -> None:
    await people(agents)
    await agents.agents.enqueue("data-export", {"userId": "ann"}, tenant="north")
    await agents.agents.enqueue("data-export", {"userId": "ann"})
    await drain(agents)
    found = {}
    for export in await agents.agents.exports.list():
        with ZipFile(agents.agents.exports.path(export)) as archive:
            told = read_lines(archive.read("tables/agents_sessions.jsonl"))
            found[export.tenant_id] = {session["id"] for session in told}
    assert found == {"north": {"north-ann"}, "": {"north-ann", "south-ann"}}


async def test_an_export_without_anybody_is_refused(agents: Penstock) -> None:
    handle = await agents.agents.enqueue("data-export", {})
    await drain(agents)
    job = await agents.get(handle.id)
    assert job.status is Status.DEAD_LETTER
    assert "named by the job, or a userId" in (job.error or "")


async def test_an_exported_audit_log_verifies_by_itself(agents: Penstock) -> None:
    for n in range(3):
        await Operator(agents, "user:ann").controls.pause(queue=f"q{n}")
    await Journal(agents.store).write("user:bob", "job.cancel", "job:1", tenant_id="north")
    await agents.agents.enqueue("audit-export", {})
    await agents.agents.enqueue("audit-export", {}, tenant="north")
    await drain(agents)
    exports = {each.tenant_id: each for each in await agents.agents.exports.list()}
    whole = read_lines(agents.agents.exports.path(exports[""]).read_bytes())
    entries, end = [Entry(**each) for each in whole[:-1]], whole[-1]
    assert first_break(entries) is None
    assert entries[0].previous == GENESIS
    assert end == {"verified": 4, "entries": 4, "head": entries[-1].hash}
    part = read_lines(agents.agents.exports.path(exports["north"]).read_bytes())
    assert [each["subject"] for each in part[:-1]] == ["job:1"]
    assert part[-1] == {"verified": 4, "entries": 1, "head": end["head"]}


async def test_a_broken_audit_log_is_not_exported(agents: Penstock) -> None:
    await Operator(agents, "user:ann").controls.pause(queue="q")
    await Operator(agents, "user:ann").controls.pause(queue="r")
    change(agents, "UPDATE audit_log SET actor = 'user:eve' WHERE seq = 1")
    handle = await agents.agents.enqueue("audit-export", {})
    await drain(agents)
    job = await agents.get(handle.id)
    assert job.status is Status.DEAD_LETTER
    assert "entry 1 breaks its chain" in (job.error or "")
    [export] = await agents.agents.exports.list()
    assert export.status == "running"
    assert not agents.agents.exports.path(export).exists()


@pytest.mark.parametrize("payload", [{}, {"tenantId": "south"}])
async def test_a_whole_tenant_is_erased_only_by_its_name(
    agents: Penstock, payload: dict[str, str]
) -> None:
    await people(agents)
    handle = await agents.agents.enqueue("data-deletion", payload, tenant="north")
    await drain(agents)
    assert (await agents.get(handle.id)).status is Status.DEAD_LETTER
    assert len(rows(agents, "SELECT id FROM agents_sessions")) == 3


@pytest.mark.parametrize("nobody", ["", "a\0b"])
@pytest.mark.parametrize("name", ["data-deletion", "data-export"])
async def test_a_user_without_a_name_is_not_the_whole_tenant(
    agents: Penstock, name: str, nobody: str
) -> None:
    await people(agents)
    with pytest.raises(InvalidOption, match="userId"):
        await agents.agents.enqueue(name, {"userId": nobody}, tenant="north")
    with pytest.raises(InvalidOption, match="person"):
        await agents.agents.deletions.request(tenant="north", person=nobody)
    await drain(agents)
    assert len(rows(agents, "SELECT id FROM agents_sessions")) == 3


async def test_nobody_elses_deletion_can_be_named(agents: Penstock) -> None:
    handle = await agents.agents.enqueue(
        "data-deletion", {"deletionId": "01M7JVZT6MKYPWYFCT2SEDJE88"}, tenant="north"
    )
    await drain(agents)
    assert "only its own job names it" in ((await agents.get(handle.id)).error or "")


async def test_a_certificate_can_be_verified_and_tells_nothing(agents: Penstock) -> None:
    await people(agents)
    await agents.agents.deletions.request(person="ann")
    await drain(agents)
    [deletion] = await agents.agents.deletions.list()
    certificate = deletion.certificate
    assert certificate is not None
    deletions = agents.agents.deletions
    assert await deletions.verify(certificate)
    assert await deletions.is_about(certificate, person="ann")
    assert not await deletions.is_about(certificate, person="bob")
    forged = replace(certificate, found={"agents_sessions": 1})
    assert not await deletions.verify(forged)
    assert certificate.found["agents_sessions"] == 2
    [entry] = [each for each in await agents.store.audit.page(0) if each.action == "data.delete"]
    assert (entry.seq, entry.subject) == (certificate.audit, f"deletion:{deletion.id}")
    assert (await Journal(agents.store).verify()).problem is None
    assert "ann" not in str(rows(agents, "SELECT * FROM agents_deletions"))


@pytest.mark.thorough("postgres")
async def test_a_deletion_waits_for_jobs_that_run(agents: Penstock, clock: FakeClock) -> None:
    @agents.job(name="slow")
    async def slow() -> None: ...

    await agents.find_type("slow").options(tenant="north").enqueue()
    claimed = await agents.store.jobs.claim(
        Claim(owner="me:1", types=("slow",), limit=1, start=1, lease_ms=60_000)
    )
    assert claimed.leases
    await agents.agents.deletions.request(tenant="north")
    await drain(agents)
    [deletion] = await agents.agents.deletions.list()
    assert deletion.status == "erasing"
    assert await agents.store.upkeep.rescue(owner="me:1", max_rescues=5)
    clock.advance(seconds=5)
    await drain(agents)
    [deletion] = await agents.agents.deletions.list()
    assert deletion.status == "done"
    assert await agents.find(tenant_id="north") == []
