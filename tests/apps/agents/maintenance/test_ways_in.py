"""Quotas hold for jobs on a Redis, over HTTP and at the command line, and go along with a move."""

from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

from penstock import Penstock
from penstock.cli import app as program
from penstock.config import Settings
from penstock.model.errors import NotAdmitted
from penstock.operate.move import move
from penstock.operate.tables import Places
from penstock.server.app import create_server
from penstock.testing import FakeClock, drain

OWN = {"agents": {"schedules": False}}


async def test_jobs_on_a_redis_are_counted_in_the_tables_beside_it(
    valkey_url: str, tmp_path: Path, clock: FakeClock
) -> None:
    tables = f"sqlite:///{tmp_path}/tables.db"
    settings = Settings(url=valkey_url, tables=tables, extension=OWN)
    async with Penstock(settings=settings, extensions=["agents"], clock=clock) as app:

        @app.job(name="idle")
        async def idle() -> None: ...

        await app.agents.quotas.set("north", "jobs", 3)
        north = idle.options(tenant="north")
        await north.enqueue()
        await app.transact(lambda tx: tx.enqueue(north.new()))
        await app.enqueue_many([north.new()])
        for refused in (north.enqueue(), app.transact(lambda tx: tx.enqueue(north.new()))):
            with pytest.raises(NotAdmitted, match="quota of jobs"):
                await refused
        assert (await drain(app)).completed == 3


async def test_a_redis_without_tables_takes_jobs_uncounted(valkey_url: str) -> None:
    settings = Settings(url=valkey_url, extension=OWN)
    async with Penstock(settings=settings, extensions=["agents"]) as app:

        @app.job(name="idle")
        async def idle() -> None: ...

        await idle.options(tenant="north").enqueue()
        assert (await drain(app)).completed == 1


async def test_over_http_it_is_refused_with_the_reason(agents: Penstock) -> None:
    await agents.agents.quotas.set("north", "jobs", 0)
    transport = httpx.ASGITransport(create_server(agents, trusts_callers=True))
    async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
        told = {"type": "session-cleanup", "payload": {"maxAge": 1}, "tenant": "north"}
        answer = await http.post("/api/jobs", json=told)
    assert answer.status_code == 403
    assert "quota of jobs is used up (0 of 0 a month)" in answer.text


def test_at_the_command_line_it_is_refused_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    url = f"sqlite:///{tmp_path}/work.db"
    app = Penstock(url, extensions=["agents"], settings=Settings(extension=OWN))
    app.sync.run(app.agents.quotas.set("north", "jobs", 0))
    app.sync.close()
    Path("penstock.toml").write_text(f'[penstock]\nurl = "{url}"\nextensions = ["agents"]\n')
    words = ["enqueue", "session-cleanup", "--payload", '{"maxAge": 1}', "--tenant", "north"]
    answer = CliRunner().invoke(program, words)
    assert answer.exit_code != 0
    assert "quota of jobs is used up" in " ".join(answer.output.split())


async def test_quotas_usage_and_certificates_go_along_with_a_move(
    tmp_path: Path, postgres_store_url: str, clock: FakeClock
) -> None:
    old = f"sqlite:///{tmp_path}/old.db"
    settings = Settings(extension=OWN)
    async with Penstock(old, extensions=["agents"], settings=settings, clock=clock) as app:
        await app.agents.quotas.set("north", "jobs", 2)
        await app.agents.enqueue("session-cleanup", {"maxAge": 1}, tenant="north")
        await app.agents.deletions.request(person="ann")
        await drain(app)
    async with Penstock(old, extensions=["agents"], settings=settings) as app:
        known = app.extensions.known()
    await move(old, postgres_store_url, tables=Places(known=known), clock=clock)
    url = postgres_store_url
    async with Penstock(url, extensions=["agents"], settings=settings, clock=clock) as app:
        await app.agents.enqueue("session-cleanup", {"maxAge": 1}, tenant="north")
        with pytest.raises(NotAdmitted):
            await app.agents.enqueue("session-cleanup", {"maxAge": 1}, tenant="north")
        [deletion] = await app.agents.deletions.list()
        assert deletion.certificate is not None
        assert await app.agents.deletions.verify(deletion.certificate)
        assert await app.agents.deletions.is_about(deletion.certificate, person="ann")
