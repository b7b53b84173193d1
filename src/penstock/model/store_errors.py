"""What a store could not do; each error takes fields and writes its own sentence."""

from penstock.model.errors import PenstockError


class StoreError(PenstockError):
    """The store could not do what was asked."""

    def __init__(self, store: str, problem: str) -> None:
        from penstock.model.redact import without_password

        self.store = without_password(store)
        super().__init__(f"Store {self.store} {problem}.")


class StoreUnavailable(StoreError):
    """The store cannot be opened or reached."""

    def __init__(self, store: str, reason: str) -> None:
        self.reason = reason
        super().__init__(
            store, f"cannot be reached ({reason}); check that it exists and may be opened"
        )


class StoreCorrupt(StoreError):
    """The store's file is damaged."""

    def __init__(self, store: str, reason: str) -> None:
        self.reason = reason
        super().__init__(
            store, f"is damaged ({reason}); keep a copy of it and run `penstock restore`"
        )


class StoreReadOnly(StoreError):
    """The store cannot be written."""

    def __init__(
        self, store: str, advice: str = "make the file and its directory writable for this user"
    ) -> None:
        self.advice = advice
        super().__init__(store, f"is read-only; {advice}")


class AccessDenied(StoreError):
    """The store's server refused the account."""

    def __init__(self, store: str, reason: str, advice: str) -> None:
        self.reason = reason
        self.advice = advice
        super().__init__(store, f"refused the account ({reason}); {advice}")


class ServerTooOld(StoreError):
    """The store's server lacks what penstock needs."""

    def __init__(self, store: str, found: str, required: str) -> None:
        self.found = found
        self.required = required
        super().__init__(
            store, f"is a server of version {found}; upgrade it to {required} or newer"
        )


class UnsafeServer(StoreError):
    """The store's server is set up so that it could lose jobs."""

    def __init__(self, store: str, problem: str, advice: str) -> None:
        self.problem = problem
        self.advice = advice
        super().__init__(store, f"could lose jobs ({problem}); {advice}")


class TooManyToCopy(StoreError):
    """A Redis installation that its server could not copy without stopping for too long."""

    def __init__(self, store: str, jobs: int, most: int) -> None:
        self.jobs = jobs
        super().__init__(
            store,
            f"holds {jobs:,} jobs, and copying more than {most:,} would stop its server for "
            "seconds; run BGSAVE there and keep the file it writes, or `valkey-cli --rdb FILE`",
        )


class NoTransactions(StoreError):
    """An enqueue that was to join a transaction, on a store that has none."""

    def __init__(self, store: str) -> None:
        super().__init__(
            store,
            "has no transactions that an enqueue could join; leave connection=… out, "
            "or keep the jobs in SQLite or PostgreSQL",
        )


class StoreIsDirectory(StoreError):
    """The store's path names a directory."""

    def __init__(self, store: str) -> None:
        super().__init__(store, "is a directory; name a file in it, such as work.db")


class SchemaTooNew(StoreError):
    """The store was written by a newer penstock."""

    def __init__(self, store: str, found: int, supported: int) -> None:
        self.found = found
        self.supported = supported
        super().__init__(
            store,
            f"has schema version {found}, and this penstock knows versions up to {supported}; "
            "upgrade penstock",
        )


class NetworkFilesystem(StoreError):
    """The store lies on a file system whose locks cannot be trusted."""

    def __init__(self, store: str, filesystem: str) -> None:
        self.filesystem = filesystem
        super().__init__(
            store,
            f"lies on {filesystem}, a network file system, where SQLite loses data; "
            "move it to a local disk, or use PostgreSQL",
        )


class SqliteTooOld(StoreError):
    """The SQLite library has a bug that can corrupt a WAL database."""

    def __init__(self, store: str, found: str, required: str) -> None:
        self.found = found
        self.required = required
        super().__init__(
            store,
            f"needs SQLite {required} or newer, and apsw brings {found}, which can corrupt it; "
            "run `pip install --upgrade apsw`",
        )


class ForeignHandle(StoreError):
    """Another SQLite library in this process has the store's file open."""

    def __init__(self, store: str, library: str = "another SQLite library") -> None:
        self.library = library
        super().__init__(
            store,
            f"is also open in this process through {library}, and two SQLite libraries on one file "
            "corrupt it; close that connection and take one from app.connection()",
        )


class ForeignConnection(StoreError):
    """A connection of a library that cannot share the store's transaction."""

    def __init__(
        self,
        store: str,
        connection_type: str,
        advice: str = "pass a connection from app.connection()",
    ) -> None:
        self.connection_type = connection_type
        super().__init__(store, f"cannot join a transaction of {connection_type}; {advice}")


class OtherDatabase(ForeignConnection):
    """A connection to a database that is not the store's."""


class ForkedStore(StoreError):
    """A store that was opened before this process was forked."""

    def __init__(self, store: str) -> None:
        super().__init__(
            store,
            "was opened before this process was forked, and using it here can corrupt it; "
            "open the store after the fork",
        )


class TransactionHeld(StoreError):
    """A plain enqueue that would wait for the caller's own transaction."""

    def __init__(self, store: str) -> None:
        super().__init__(
            store,
            "is locked by a write transaction of this very caller, so the enqueue would wait for "
            "ever; pass connection=… to join the transaction, or commit it first",
        )


class TransactionsMet(StoreError):
    """A transaction that would wait for one of another task, which it keeps from going on."""

    def __init__(self, store: str) -> None:
        super().__init__(
            store,
            "is locked by a transaction of another task of this event loop, which cannot go on "
            "while this one waits; begin one at a time under an asyncio.Lock, or use app.transact",
        )


class StoreFull(StoreError):
    """The store's disk or memory is full."""

    def __init__(self, store: str, where: str = "on its disk") -> None:
        self.where = where
        super().__init__(
            store, f"has no space left {where}; nothing was written, free some and try again"
        )


class NotAPenstockStore(StoreError):
    """A database that holds something else."""

    def __init__(
        self, store: str, found: str, advice: str = "name another file or a new one"
    ) -> None:
        self.found = found
        self.advice = advice
        super().__init__(store, f"is not a penstock store (it holds {found}); {advice}")


class StoreClosed(StoreError):
    """A store that was used after it was closed."""

    def __init__(self, store: str) -> None:
        super().__init__(store, "is closed; use it inside `async with app:` or open it again")


class NoTables(PenstockError):
    """Tables, asked for where jobs live in a store that has none."""

    def __init__(self, what: str, url: str) -> None:
        self.what = what
        self.url = url
        super().__init__(
            f"{what} needs tables, and {url} has none; name a place for them with tables=, "
            "such as sqlite:///tables.db or postgresql://…."
        )
