"""A process that is killed between the delivery of a job and its confirmation."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from examples.links import extension
from penstock import Penstock, Settings
from penstock.outbox.extension import deliver

CHILD = """
import asyncio, os, signal, sys
from examples.links import add, extension
from penstock import Penstock, Settings

async def main(url, tables):
    settings = Settings(url=url, tables=tables)
    async with Penstock(settings=settings, extensions=[extension]) as app:
        store = app.table_store("outbox")
        write = store.write

        async def die_before(work):
            if work.__name__ == "confirm":
                os.kill(os.getpid(), signal.SIGKILL)
            return await write(work)

        store.write = die_before
        await add(app, "http://127.0.0.1:1/")

asyncio.run(main(*sys.argv[1:]))
"""


def run_child(*places: str) -> "subprocess.CompletedProcess[bytes]":
    return subprocess.run([sys.executable, "-c", CHILD, *places], capture_output=True, check=False)


@pytest.mark.faults
@pytest.mark.quick
async def test_a_job_whose_delivery_was_not_confirmed_is_enqueued_once(
    valkey_url: str, tmp_path: Path
) -> None:
    tables = f"sqlite:///{tmp_path}/tables.db"
    ended = run_child(valkey_url, tables)
    assert ended.returncode == -signal.SIGKILL, ended.stderr
    settings = Settings(url=valkey_url, tables=tables)
    async with Penstock(settings=settings, extensions=[extension]) as app:
        [job] = await app.find(type="links.check")
        assert await deliver(app) == 1
        assert [each.id for each in await app.find(type="links.check")] == [job.id]
        assert await deliver(app) == 0
