"""Checking, one by one, what this store promises, and how far back the server must remember."""

from collections.abc import Iterator
from time import perf_counter

from msgspec import Struct

from penstock.model.wording import span
from penstock.store.contract import Durability
from penstock.store.postgres.migrate import are_current, latest
from penstock.store.relational.transaction import Transaction

OLD_MS = 300_000
MANY_DEAD = 50_000
DEAD_PER_LIVE = 5
SLOW_MS = 50.0
WALKS = 3


class Horizon(Struct, frozen=True, kw_only=True):
    """The oldest open transaction that can be seen, and the dead rows among the living."""

    age_ms: int = 0
    pid: int | None = None
    application: str = ""
    user: str = ""
    state: str = ""
    live_rows: int = 0
    dead_rows: int = 0
    walk_ms: float = 0

    @property
    def is_old(self) -> bool:
        """Whether a transaction has been open for too long."""
        return self.pid is not None and self.age_ms > OLD_MS

    @property
    def is_littered(self) -> bool:
        """Whether claims have to read past far more dead rows than there are living ones."""
        return self.dead_rows > max(MANY_DEAD, DEAD_PER_LIVE * self.live_rows)

    @property
    def is_slow(self) -> bool:
        """Whether a claim takes long to find out where jobs wait."""
        return self.walk_ms > SLOW_MS


def horizon(tx: Transaction) -> Horizon:
    """Look at what is open now, and walk over the lanes as a claim does."""
    live, dead = tx.row("dead_rows") or (0, 0)
    walk_ms = _walk_ms(tx)
    oldest = tx.row("oldest_transaction")
    if oldest is None:
        return Horizon(live_rows=live, dead_rows=dead, walk_ms=walk_ms)
    pid, application, user, state, age_ms = oldest
    return Horizon(
        age_ms=age_ms,
        pid=pid,
        application=application,
        user=user,
        state=state,
        live_rows=live,
        dead_rows=dead,
        walk_ms=walk_ms,
    )


def _walk_ms(tx: Transaction) -> float:
    """Return the least of a few: one walk may have waited for a processor, as this process may."""
    least = float("inf")
    for _ in range(WALKS):
        began = perf_counter()
        tx.rows("walk")
        least = min(least, (perf_counter() - began) * 1000)
        if least <= SLOW_MS:
            break
    return least


def warning(found: Horizon) -> str | None:
    """What a person should do about it, if anything."""
    if found.is_old:
        who = f"{found.application or 'a program without a name'} (pid {found.pid}, {found.user})"
        return (
            f"{who} has had a transaction open for {span(found.age_ms)}, {found.state or 'busy'}; "
            f"end it there, or with SELECT pg_terminate_backend({found.pid}), "
            "because claims slow down until then"
        )
    if found.is_littered:
        return (
            f"jobs_live has {found.dead_rows:,} dead rows and {found.live_rows:,} living ones; "
            "look whether autovacuum runs, and for replication slots and prepared transactions "
            "that nobody uses"
        )
    if found.is_slow:
        return (
            f"a claim takes {found.walk_ms:.0f} ms to find out where jobs wait; "
            "if that stays so, reindex jobs_live_queued, or look what keeps the server busy"
        )
    return None


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
    functions = str(tx.value("meta", ("functions",)) or "none")
    detail = f"those of penstock {functions}"
    if not are_current(functions):
        detail += "; run `penstock migrate` as the user who owns the tables"
    yield "functions", are_current(functions), detail
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
