"""Checking, one by one, what this store promises."""

from collections.abc import Iterator

from penstock.model.spans import span
from penstock.store.contract import Durability
from penstock.store.postgres.horizon import horizon, warning
from penstock.store.postgres.migrate import latest
from penstock.store.relational.transaction import Transaction

PROMISE = (
    "PostgreSQL with synchronous_commit=on: nothing acknowledged is lost, by a crash of a process, "
    "of the server, or of its power. "
    "An asynchronous standby that takes over may lack the last moments."
)

Check = tuple[str, bool, str]


def inspect(tx: Transaction) -> Durability:
    """Every check with its outcome and a word on it."""
    checks = [*_server_checks(tx), *_schema_checks(tx), *_row_checks(tx), *_horizon_checks(tx)]
    return Durability(PROMISE, checks)


def _server_checks(tx: Transaction) -> Iterator[Check]:
    version, commit, fsync, pages, autovacuum, named = tx.rows("settings")[0]
    yield "server", True, f"PostgreSQL {version.partition(' ')[0]}"
    yield "commit", commit != "off", f"synchronous_commit is {commit}"
    yield "fsync", fsync == "on", f"fsync is {fsync}"
    yield "pages", pages == "on", f"full_page_writes is {pages}"
    yield "autovacuum", autovacuum == "on", f"autovacuum is {autovacuum}"
    standbys, waited_for, is_seen = tx.rows("standbys")[0]
    if named and standbys and not is_seen:
        told = "this role may not see which; grant it pg_read_all_stats"
        yield "replication", True, f"some of {standbys} standbys are to be waited for, and {told}"
    elif named and commit in ("on", "remote_apply"):
        detail = f"{waited_for} of {standbys} standbys are waited for"
        yield "replication", waited_for > 0, detail
    elif standbys:
        detail = f"{standbys} asynchronous standbys: one that takes over may lack the last moments"
        yield "replication", True, detail
    else:
        yield "replication", True, "no standby is connected"


def _schema_checks(tx: Transaction) -> Iterator[Check]:
    user, schema, owns, sees_all = tx.rows("identity")[0]
    found, granted = (int(tx.value("meta", (name,)) or 0) for name in ("schema", "access"))
    yield (
        "schema",
        found == latest(),
        f"{schema} is at version {found}, this penstock knows {latest()}",
    )
    kind = "a superuser" if sees_all else "the owner of the tables" if owns else "without DDL"
    yield "role", True, f"connected as {user}, {kind}"
    bare = [name for (name,) in tx.rows("unprotected")]
    detail = f"no row-level security on {', '.join(bare)}" if bare else "on for every table"
    yield "row security", not bare, detail
    if granted == latest():
        yield "roles", True, f"{schema}_worker and {schema}_tenant have their rights"
    else:
        detail = f"{schema}_worker and {schema}_tenant do not exist; see `penstock migrate --sql`"
        yield "roles", True, detail


def _row_checks(tx: Transaction) -> Iterator[Check]:
    unowned = tx.value("leases_without_owner")
    yield "leases", unowned == 0, f"{unowned} running jobs without an owner"
    stray = tx.value("keys_without_job")
    yield "keys", stray == 0, f"{stray} unique keys held by no waiting or running job"


def _horizon_checks(tx: Transaction) -> Iterator[Check]:
    found = horizon(tx)
    told = warning(found)
    age = f"the oldest is {span(found.age_ms)} old" if found.pid else "none is open"
    fine = f"transactions: {age}; {found.dead_rows:,} dead rows, {found.live_rows:,} live"
    yield "horizon", told is None, told or fine
