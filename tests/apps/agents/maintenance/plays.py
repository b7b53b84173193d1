"""The four jobs of maintenance from their triggers to their effects.

They are apart from the tests, so that the processes that perform them load nothing else.
"""

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

from penstock import Penstock
from penstock.apps.agents.sessions.records import NewTurn
from penstock.operate.journal import Journal
from tests.apps.agents.killing import Play
from tests.apps.agents.raw import rows


async def people(app: Penstock) -> None:
    """Sessions of two people in one tenant, and of one in another."""
    for tenant, user in (("north", "ann"), ("north", "bob"), ("south", "ann")):
        session = await app.agents.sessions.open(
            tenant=tenant, user=user, session_id=f"{tenant}-{user}"
        )
        await app.agents.sessions.add(session.id, NewTurn(role="user", content=f"I am {user}"))


class Checking(Play):
    """Weigh what tenants store."""

    async def given(self, app: Penstock) -> None:
        await people(app)
        await app.agents.quotas.set("north", "storage", 100)
        await app.agents.quotas.set("south", "storage", 1_000_000)
        lost = ("lost", "south", json.dumps({"tokens": ["2026-01", 5]}), 0)
        await app.transact(lambda tx: tx.agents.run("add_reservation", lost))
        counted = ("south", "tokens", "2026-01", 3, 5)
        await app.transact(lambda tx: tx.agents.run("add_usage", counted))

    async def enqueue(self, app: Penstock) -> None:
        await app.agents.enqueue("quota-check", {})

    async def state(self, app: Penstock) -> Any:
        standings = rows(app, "SELECT tenant_id, measure, state FROM agents_standings")
        asked = "SELECT tenant_id, sum(used) FROM agents_usage WHERE measure = ? GROUP BY 1"
        weighed = {tenant: used > 100 for tenant, used in rows(app, asked, "storage")}
        return standings, weighed, rows(app, asked, "tokens")


class ExportingData(Play):
    """Export a tenant."""

    again = False
    """A second one makes a file of its own."""

    async def given(self, app: Penstock) -> None:
        await people(app)

    async def enqueue(self, app: Penstock) -> None:
        await app.agents.enqueue("data-export", {}, tenant="north")

    async def state(self, app: Penstock) -> Any:
        asked = "SELECT file, sha256, bytes, status FROM agents_exports"
        [(file, hashed, size, status)] = rows(app, asked)
        folder = Path(app.extensions.settings("agents").folder)
        [path] = (folder / "exports").iterdir()
        data = path.read_bytes()
        assert (path.name, sha256(data).hexdigest()) == (Path(file).name, hashed)
        return hashed, size == len(data), status


class ExportingAudit(ExportingData):
    """Export the audit log."""

    async def given(self, app: Penstock) -> None:
        for n in range(5):
            tenant = "north" if n % 2 else "south"
            await Journal(app.store).write("user:ann", "job.cancel", f"job:{n}", tenant_id=tenant)

    async def enqueue(self, app: Penstock) -> None:
        await app.agents.enqueue("audit-export", {})


class Deleting(Play):
    """Erase a person."""

    async def given(self, app: Penstock) -> None:
        await people(app)
        await app.agents.enqueue("session-cleanup", {"maxAge": 1}, created_by="ann")

    async def enqueue(self, app: Penstock) -> None:
        await app.agents.enqueue("data-deletion", {"userId": "ann"}, tenant="north")

    async def state(self, app: Penstock) -> Any:
        asked = "SELECT subject, status, subject_hash, certificate FROM agents_deletions"
        told = rows(app, f"{asked} ORDER BY created_at, id")
        certificates = [json.loads(each[3]) for each in told]
        first = max(certificates, key=lambda each: len(each["found"]))
        assert await app.agents.deletions.list()
        return (
            rows(app, "SELECT id FROM agents_sessions ORDER BY id"),
            rows(app, "SELECT session_id FROM agents_turns ORDER BY session_id"),
            {(subject, status) for subject, status, _, _ in told},
            {name: first[name] for name in ("found", "left", "kind", "remarks")},
        )
