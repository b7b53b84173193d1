"""The limits move every job, and write the columns that penstock has."""

import psycopg
import pytest
import redis

from proof.bench.limits import postgres as postgres_limit
from proof.bench.limits import redis as redis_limit

COLUMNS = "SELECT column_name FROM information_schema.columns WHERE table_name = %s"
OURS_ALONE = {"live"}  # penstock keeps living and ended jobs apart; a limit need not


def columns(url: str, table: str) -> set[str]:
    with psycopg.connect(url) as connection:
        return {name for (name,) in connection.execute(COLUMNS, (table,))}


def test_every_row_of_the_postgres_limit_is_completed_with_its_execution(postgres_url: str) -> None:
    assert postgres_limit.enqueue(postgres_url, 250) > 0
    assert postgres_limit.drain(postgres_url) > 0

    with psycopg.connect(postgres_url) as connection:
        ended = connection.execute(
            "SELECT status, attempts, fence, count(*) FROM bare_jobs GROUP BY 1, 2, 3"
        ).fetchall()
        ran = connection.execute("SELECT count(DISTINCT job_id) FROM bare_executions").fetchone()
    assert ended == [("completed", 1, 1, 250)]
    assert ran == (250,)


def test_the_postgres_limit_has_the_columns_of_penstock(
    postgres_url: str, postgres_store_url: str
) -> None:
    postgres_limit.enqueue(postgres_url, 1)

    ours = columns(postgres_store_url, "jobs")
    assert columns(postgres_url, "bare_jobs") == ours - OURS_ALONE
    assert columns(postgres_url, "bare_executions") <= columns(postgres_store_url, "job_executions")


@pytest.fixture
def client(valkey_server_url: str) -> "redis.Redis":
    return redis.Redis.from_url(valkey_server_url, decode_responses=True)


def test_every_job_of_the_redis_limit_is_completed_with_its_execution(
    valkey_server_url: str, client: "redis.Redis"
) -> None:
    with client:
        client.delete("{raw}:ended")
        assert redis_limit.enqueue(valkey_server_url, 250) > 0
        assert redis_limit.drain(valkey_server_url) > 0

        ids = client.zrange("{raw}:ended", 0, -1)
        assert len(ids) == 250
        assert not client.exists("{raw}:lane", "{raw}:leases")
        for job_id in ids:
            status, fence, execution = client.hmget(
                f"{{raw}}:job:{job_id}", "status", "fence", "x1"
            )
            assert (status, fence) == ("completed", "1")
            assert execution
        client.delete("{raw}:ended", *(f"{{raw}}:job:{job_id}" for job_id in ids))
