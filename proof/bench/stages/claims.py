"""Claims on PostgreSQL beside a long history, and while somebody holds a transaction open."""

from collections.abc import Generator
from contextlib import contextmanager
from functools import partial

from proof.bench.processes import ask_probe
from proof.bench.stages.stage import Bench, Stage
from proof.servers import PostgresServer

BATCH = 200

# Straight into the table: what matters is that the rows are there.
_HISTORY = """
INSERT INTO penstock.jobs_ended (id, type, queue, status, live, rank, priority, attempts, fence,
    max_retries, timeout_ms, scheduled_at, created_at, updated_at, queued_at, started_at,
    completed_at, result, payload)
SELECT 'H' || lpad(number::text, 25, '0'), 'noop', 'default', 'completed', false, 0, 5, 1, 1,
    3, 300000, now(), now(), now(), now(), now(), now(), 'null', '{"data": "x"}'
FROM generate_series(1, %s) AS number
"""


def claims(bench: Bench) -> Stage:
    """Single claims: alone, with a long history, and with an old transaction."""
    return Stage("claims on PostgreSQL", [partial(_measure, bench)])


def _measure(bench: Bench) -> None:
    with PostgresServer() as server:
        for _ in range(max(1, bench.scale.repetitions - 2)):
            with _database(server) as url:
                _claims(bench, url, "claim ms")
            with _database(server) as url:
                _execute(url, _HISTORY, bench.scale.history)
                _claims(bench, url, "claim beside history ms")
            with _database(server) as url, _open_transaction(url):
                _claims(bench, url, "claim beside transaction ms")


def _claims(bench: Bench, url: str, name: str) -> None:
    arguments = {"url": url, "jobs": bench.scale.jobs, "batch": BATCH}
    bench.readings.extend(name, ask_probe("claims.claims", arguments))


@contextmanager
def _database(server: PostgresServer) -> Generator[str, None, None]:
    url = server.create_database("claims")
    try:
        ask_probe("claims.make", {"url": url})
        yield url
    finally:
        server.drop_database("claims")


@contextmanager
def _open_transaction(url: str) -> Generator[None, None, None]:
    import psycopg

    with psycopg.connect(url) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT count(*) FROM penstock.jobs")
        yield


def _execute(url: str, statement: str, *values: int) -> None:
    import psycopg

    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(statement.encode(), values)
