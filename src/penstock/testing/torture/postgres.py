"""Harming a PostgreSQL server that was started for it, and looking at what is left."""

from collections.abc import Iterator

import psycopg
from psycopg import sql

from penstock.testing.servers import PostgresServer

CUT = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid()
ORDER BY random() LIMIT %s
"""
AT_ONCE = 3
# Partial indexes do not hold every row, and only ordered ones can be counted by.
WHOLE_INDEXES = """
SELECT schema.nspname, indexed.relname, index.relname
FROM pg_index
JOIN pg_class AS index ON index.oid = indexrelid
JOIN pg_class AS indexed ON indexed.oid = indrelid
JOIN pg_namespace AS schema ON schema.oid = indexed.relnamespace
JOIN pg_am ON pg_am.oid = index.relam
WHERE indpred IS NULL AND indexprs IS NULL AND amname = 'btree'
  AND schema.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast')
"""


def cut(url: str, at_once: int = AT_ONCE) -> None:
    """End a few connections of a database, whatever they do."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(CUT, (at_once,))


def autopsy(server: PostgresServer, url: str) -> list[str]:
    """What is wrong with the files of the server, which is stopped for it."""
    found = list(differences(url))
    server.stop("fast")
    checked = server.account.run([server.programs / "pg_checksums", "--check", "-D", server.data])
    if checked.returncode:
        found.append(f"pg_checksums: {(checked.stderr or checked.stdout).strip()}")
    return found


def differences(url: str) -> Iterator[str]:
    """The indexes that do not hold what their tables hold."""
    with psycopg.connect(url) as connection:
        for schema, table, index in connection.execute(WHOLE_INDEXES).fetchall():
            heap = _counted(connection, schema, table, by_index=False)
            indexed = _counted(connection, schema, table, by_index=True)
            if heap != indexed:
                yield f"{index} finds {indexed} of {heap} rows of {schema}.{table}"


def _counted(
    connection: "psycopg.Connection", schema: str, table: str, *, by_index: bool
) -> tuple[object, ...]:
    other = ("off", "on") if by_index else ("on", "off")
    for name, value in zip(
        ("enable_seqscan", "enable_indexscan", "enable_indexonlyscan", "enable_bitmapscan"),
        (other[0], other[1], other[1], other[1]),
        strict=True,
    ):
        connection.execute(sql.SQL("SET {} = {}").format(sql.Identifier(name), sql.Literal(value)))
    counting = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(schema, table))
    return connection.execute(counting).fetchone() or ()
