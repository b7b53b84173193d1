"""The types of jobs about sessions: expire those that are quiet, archive those that are over."""

from typing import Any

from msgspec import Struct

from penstock.app.context import Context
from penstock.apps.agents.sessions.records import EXPIRED
from penstock.apps.agents.worker import Worker
from penstock.model.errors import InvalidOption

DAY_MS = 86_400_000
AT_ONCE = 500
"""So many sessions expire in one commit."""


class CleanupData(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """`maxAge` is in milliseconds: who was quiet for longer has left."""

    max_age: int = DAY_MS

    def __post_init__(self) -> None:
        if self.max_age <= 0:
            raise InvalidOption("maxAge", self.max_age, "a number of milliseconds above 0")


class CleanedUp(Struct, rename="camel", frozen=True):
    """How many sessions have expired."""

    expired: int


class SessionCleanup(Worker[CleanupData, CleanedUp]):
    """Expire sessions that were quiet for `maxAge`, or whose time is over.

    With a tenant only its sessions, without one those of all. Each is then looked through for
    what is to be learned from it, unless `learning.automatic` is off.
    """

    name = "session-cleanup"

    async def process(self, data: CleanupData, ctx: Context) -> CleanedUp:
        """Expire them by some hundreds; what has expired is not looked at again."""
        learns: bool = ctx.app.extensions.settings("agents").learning.automatic
        tenant = ctx.job.tenant_id or None

        def work(tx: Any) -> int:
            asked = {"quiet_since": tx.now - data.max_age, "now": tx.now, "tenant": tenant}
            rows = tx.agents.rows("sessions_to_expire", {**asked, "limit": AT_ONCE})
            ended: dict[tuple[str, str | None], list[str]] = {}
            for session_id, tenant_id, workspace_id in rows:
                if tx.agents.run("end_session", {"id": session_id, "status": EXPIRED}):
                    ended.setdefault((tenant_id, workspace_id), []).append(session_id)
            if learns:
                from penstock.apps.agents.learning.jobs import process_later

                for (tenant_id, workspace_id), ids in ended.items():
                    process_later(ctx.app, tx, tenant_id, workspace_id, ids)
            return sum(map(len, ended.values()))

        expired = 0
        while found := await ctx.transact(work):
            expired += found
        return CleanedUp(expired)


class ArchiveData(Struct, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """Which sessions to archive: those named, or those quiet for `olderThan` milliseconds."""

    session_ids: list[str] | None = None
    older_than: int = 7 * DAY_MS
    batch_size: int = 500

    def __post_init__(self) -> None:
        if self.older_than < 0:
            raise InvalidOption("olderThan", self.older_than, "a number of milliseconds")
        if not 1 <= self.batch_size <= 5_000:
            raise InvalidOption("batchSize", self.batch_size, "1 to 5000")


class ArchivedSessions(Struct, rename="camel", frozen=True):
    """How much was archived, and in which files below the folder."""

    archived: int
    turns: int
    bytes: int
    files: list[str]


class SessionArchive(Worker[ArchiveData, ArchivedSessions]):
    """Move sessions that are over into Parquet files, which are compared before rows are removed.

    A session stays known, and `app.agents.sessions.restore` brings it back whole.
    """

    name = "session-archive"

    async def process(self, data: ArchiveData, ctx: Context) -> ArchivedSessions:
        """Archive file by file; one that was begun when the job was killed is begun again."""
        from penstock.apps.agents.sessions.archive import Wanted, archive

        before = int(ctx.now.timestamp() * 1000) - data.older_than
        wanted = Wanted(
            tenant=ctx.job.tenant_id or None,
            before=before,
            session_ids=data.session_ids,
            batch_size=data.batch_size,
        )

        def show(archived: int) -> None:
            ctx.progress({"phase": "archiving", "archived": archived})

        made = await archive(ctx.app, ctx.id, wanted, show)
        return ArchivedSessions(
            archived=sum(each.sessions for each in made),
            turns=sum(each.turns for each in made),
            bytes=sum(each.bytes for each in made),
            files=[each.file for each in made],
        )


WORKERS: tuple[type[Worker[Any, Any]], ...] = (SessionCleanup, SessionArchive)
