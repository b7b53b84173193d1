"""Followers and what waits for them, in SQL: triggers on the jobs record their changes."""

from collections.abc import Collection, Sequence

from msgspec.json import decode

from penstock.model.job import JobChange
from penstock.model.states import Status
from penstock.store.contract import FollowerState
from penstock.store.contract.changes import CHANGES_AT_ONCE, MANY_CHANGES
from penstock.store.relational.transaction import StorePart, Transaction, reads, writes

NEW = frozenset({Status.PENDING, Status.QUEUED})
"""As one of these a job begins."""


class RelationalChanges(StorePart):
    """`Changes` in SQL."""

    @writes
    def follow(self, tx: Transaction, name: str, statuses: Collection[Status]) -> None:
        """Record from now on when a job comes to one of these statuses."""
        tx.lock("followers")
        wanted = sorted(status.value for status in statuses)
        known = tx.value("follower", (name,))
        if known is not None and decode(known) == wanted:
            return  # no word to the tables, which would keep workers waiting for a moment
        tx.run("follow", {"name": name, "statuses": tx.listed(wanted)})
        record_changes(tx)

    @writes
    def unfollow(self, tx: Transaction, name: str) -> bool:
        """Forget a follower and what waits for it."""
        tx.lock("followers")
        known = tx.run("unfollow", {"name": name}) == 1
        if known:
            record_changes(tx)
        tx.run("drop_changes", {"name": name})
        return known

    @reads
    def followers(self, tx: Transaction) -> list[FollowerState]:
        """All followers, by name."""
        return [
            FollowerState(
                name=name,
                statuses=decode(statuses, type=tuple[Status, ...]),
                waiting=waiting,
                oldest_at=oldest_at,
            )
            for name, statuses, waiting, oldest_at in tx.rows(
                "followers", {"most": MANY_CHANGES + 1}
            )
        ]

    @reads
    def waiting(self, tx: Transaction, name: str, limit: int = CHANGES_AT_ONCE) -> list[JobChange]:
        """What a follower has not confirmed, the oldest first."""
        rows = tx.rows("waiting_changes", {"name": name, "limit": limit})
        return [
            JobChange(
                position=str(seq),
                job_id=job_id,
                type=type_,
                queue=queue,
                tenant_id=tenant_id,
                status=Status(status),
                fence=fence,
                at=at,
            )
            for seq, job_id, type_, queue, tenant_id, status, fence, at in rows
        ]

    @writes
    def confirm(self, tx: Transaction, name: str, positions: Sequence[str]) -> None:
        """Forget these changes."""
        confirmed = tx.listed([int(position) for position in positions])
        tx.run("confirm_changes", {"name": name, "positions": confirmed})

    @writes
    def erase(self, tx: Transaction, tenant_id: str) -> int:
        """Forget all changes of a tenant's jobs."""
        return tx.run("forget_changes_of_tenant", (tenant_id,))


def record_changes(tx: Transaction) -> None:
    """Give the jobs the triggers that the followers need, and take away those that none needs."""
    rows = tx.rows("followers", {"most": 0})
    followed = {status for _, statuses, *_ in rows for status in decode(statuses)}
    if followed & NEW:
        tx.run("record_every_change")
    else:
        tx.run("record_later_changes" if followed else "record_no_changes")
