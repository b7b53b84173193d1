"""`make torture`: `penstock torture` on servers that are started, cut off and crashed.

`python -m proof.torture --store postgres --jobs 2000 --kills 40`
"""

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Annotated

import psycopg
import typer
from psycopg import sql

from penstock.cli.output import JsonFlag
from penstock.logs import configure_logs
from penstock.torture import run_torture
from penstock.torture.ground import SERVER_LEASE_SECONDS, FindGround, Ground, complete, new_file
from penstock.torture.plan import Blow
from proof.servers import PostgresServer, RedisServer
from proof.servers.account import unprivileged

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


def _postgres(folder: Path, stack: ExitStack) -> Ground:
    folder.chmod(0o755)  # another user than root runs the server
    kept = folder / "postgres" if unprivileged().may_enter(folder) else None
    server = stack.enter_context(PostgresServer(kept))
    url = server.create_database("torture")
    return Ground(
        settings=complete(url),
        lease_seconds=SERVER_LEASE_SECONDS,
        harm={
            Blow.CUT: lambda: cut(url),
            Blow.CRASH: lambda: server.restart("immediate"),
        },
        autopsy=lambda: autopsy(server, url),
    )


def _redis(folder: Path, stack: ExitStack) -> Ground:
    options = {"appendfsync": "always"}
    server = stack.enter_context(RedisServer(folder / "redis", options=options))

    def crash() -> None:
        server.kill()
        server.start()

    return Ground(
        settings=complete(server.url),
        lease_seconds=SERVER_LEASE_SECONDS,
        harm={
            Blow.CUT: lambda: _drop_clients(server.ask),
            Blow.CRASH: crash,
        },
    )


def _drop_clients(ask: Callable[..., bytes]) -> None:
    for kind in ("normal", "pubsub"):
        ask("CLIENT", "KILL", "TYPE", kind, "SKIPME", "yes")


def _postgres_redis(folder: Path, stack: ExitStack) -> Ground:
    truth, hints = _postgres(folder, stack), _redis(folder, stack)
    return Ground(
        settings=complete(truth.url, hints.url),
        lease_seconds=SERVER_LEASE_SECONDS,
        harm={
            **truth.harm,
            Blow.CUT_DISPATCH: hints.harm[Blow.CUT],
            Blow.CRASH_DISPATCH: hints.harm[Blow.CRASH],
        },
        autopsy=truth.autopsy,
    )


def _started(make: Callable[[Path, ExitStack], Ground]) -> FindGround:
    @contextmanager
    def ground(folder: Path) -> Generator[Ground, None, None]:
        with ExitStack() as stack:
            yield make(folder, stack)

    return ground


GROUNDS: Mapping[str, FindGround] = MappingProxyType(
    {
        "sqlite": new_file,
        "postgres": _started(_postgres),
        "redis": _started(_redis),
        "postgres+redis": _started(_postgres_redis),
    }
)
"""The stores that a run can make for itself; a server keeps its data in the run's folder."""


def main(
    store: Annotated[str, typer.Option(help=f"One of {', '.join(GROUNDS)}.")] = "sqlite",
    jobs: Annotated[int, typer.Option(min=1, help="How many jobs.")] = 10_000,
    kills: Annotated[int, typer.Option(min=0, help="How often to kill or freeze a worker.")] = 200,
    seed: Annotated[int | None, typer.Option(help="Repeat a run's choices.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Kill and freeze workers, cut off and crash their server, and account for every job."""
    if store not in GROUNDS:
        raise typer.BadParameter(f"--store {store} is not one of {', '.join(GROUNDS)}.")
    configure_logs(level="error")  # that a server is away is no news here
    raise typer.Exit(
        run_torture(jobs=jobs, kills=kills, ground=GROUNDS[store], seed=seed, as_json=as_json)
    )


if __name__ == "__main__":
    typer.run(main)
