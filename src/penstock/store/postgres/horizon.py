"""How far back the server must remember, and what that costs the claims.

An open transaction might still want to see every row version since it began, so none of them can
be cleaned up, and claims read past more and more of them.
"""

from time import perf_counter

from msgspec import Struct

from penstock.model.spans import span
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
