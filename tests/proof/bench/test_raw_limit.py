"""The limit is only a limit of penstock if it writes what penstock writes."""

from pathlib import Path
from typing import Any

from penstock.app.penstock import Penstock
from penstock.config import Settings
from penstock.worker.worker import Worker
from proof.bench.limits.sqlite import open_raw, raw_drain, raw_enqueue, raw_rows
from proof.bench.workload import DATA, PAYLOAD

UNALIKE = {"seq", "id", "job_id"}  # unique, but of one form
NAMED = {"lease_owner", "worker"}  # whoever did it


async def by_penstock(path: Path) -> dict[str, list[dict[str, Any]]]:
    app = Penstock(settings=Settings(url=f"sqlite:///{path}"))

    @app.job
    async def noop(data: str) -> None: ...

    async with app:
        await app.enqueue_many([noop.new(DATA) for _ in range(3)])
        enqueued = rows(path, "jobs")
        await Worker(app, burst=True, upkeep=False).run()
        return {
            "enqueued": enqueued,
            "completed": rows(path, "jobs"),
            "executions": rows(path, "job_executions"),
        }


def by_hand(path: Path) -> dict[str, list[dict[str, Any]]]:
    connection = open_raw(path)
    raw_enqueue(connection, raw_rows(3, "noop", PAYLOAD))
    enqueued = rows(path, "jobs")
    assert raw_drain(connection, "noop") == 3
    connection.close()
    return {
        "enqueued": enqueued,
        "completed": rows(path, "jobs"),
        "executions": rows(path, "job_executions"),
    }


def rows(path: Path, table: str) -> list[dict[str, Any]]:
    connection = open_raw(path)
    found = connection.execute(f"SELECT * FROM {table} ORDER BY 1")
    names = [column[0] for column in found.description]
    listed = [dict(zip(names, row, strict=True)) for row in found]
    connection.close()
    return listed


def shape(row: dict[str, Any]) -> dict[str, Any]:
    """A row without what differs from run to run: ids, names and times."""
    return {name: _shape(name, value) for name, value in row.items()}


def _shape(name: str, value: Any) -> Any:
    if name in UNALIKE and isinstance(value, str):
        return len(value)
    changes = name == "rank" or name.endswith(("_at", "_ms", "_until")) or name in NAMED
    return type(value) if changes and name != "timeout_ms" else value


async def test_the_raw_limit_writes_the_rows_that_penstock_writes(tmp_path: Path) -> None:
    expected = await by_penstock(tmp_path / "penstock.db")
    written = by_hand(tmp_path / "raw.db")

    for step, found in expected.items():
        assert [shape(row) for row in written[step]] == [shape(row) for row in found], step
        assert len(found) == 3
