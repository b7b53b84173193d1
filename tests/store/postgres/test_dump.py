"""The server's own tools copy a schema, as the page about PostgreSQL says."""

import os
import subprocess
from pathlib import Path

from penstock.store.contract import JobFilter
from penstock.store.open import open_store
from penstock.store.postgres.connect import Address, address_of
from proof.conformance.build import enqueue
from proof.servers.wheels import postgres_install
from tests.store.postgres.conftest import Logins
from tests.support.databases import Databases


def _tool(name: str, address: Address, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run one of PostgreSQL's programs on the database of an address, as its user."""
    names = {"host": "PGHOST", "port": "PGPORT", "user": "PGUSER", "password": "PGPASSWORD"}
    told = {variable: str(address.options[option]) for option, variable in names.items()}
    return subprocess.run(
        [postgres_install(18) / "bin" / name, "-d", str(address.options["dbname"]), *words],
        env={**os.environ, **told},
        capture_output=True,
        text=True,
        timeout=60,
    )


async def test_a_dump_is_restored_elsewhere_with_its_jobs_rights_and_row_security(
    address: Address, logins: Logins, databases: Databases, tmp_path: Path
) -> None:
    owner = address_of(logins.owner("CREATEROLE"))
    store = open_store(owner.url)
    await store.open()
    made = await enqueue(store)
    await store.close()
    dump = ("-Fc", "-n", address.schema, "-f", str(tmp_path / "penstock.dump"))
    assert "row-level security" in _tool("pg_dump", owner, *dump).stderr
    assert _tool("pg_dump", address, *dump).stderr == ""
    elsewhere = databases.create()
    try:
        target = address_of(f"{elsewhere}?schema={address.schema}")
        restored = _tool("pg_restore", target, str(tmp_path / "penstock.dump"))
        assert restored.stderr == ""
        new = open_store(target.url)
        await new.open()
        assert [job.id for job in await new.reader.find(JobFilter())] == [made]
        await enqueue(new)
        checks = {name: held for name, held, _ in (await new.inspect()).checks}
        assert checks["row security"]
        await new.close()
    finally:
        databases.drop(elsewhere)
