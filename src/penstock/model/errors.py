"""Every error penstock raises; each takes fields and writes its own sentence."""

from collections.abc import Iterable


class PenstockError(Exception):
    """The base of every error that penstock raises on purpose."""

    def __reduce__(self) -> tuple[object, ...]:
        return _revive, (type(self), self.args, self.__dict__)


class UnknownType(PenstockError):
    """A job type that this application has not registered."""

    def __init__(self, job_type: str, known: Iterable[str] = ()) -> None:
        self.job_type = job_type
        self.known = tuple(known)
        listed = f"known types are {', '.join(self.known)}" if self.known else "none is registered"
        super().__init__(
            f"No job type is named {job_type!r} ({listed}); "
            "register it with @app.job or import the module that does."
        )


class NotIncluded(PenstockError):
    """A job type of a blueprint that belongs to no application yet."""

    def __init__(self, job_type: str) -> None:
        self.job_type = job_type
        super().__init__(
            f"Job type {job_type!r} belongs to a blueprint that no application includes; "
            "call app.include(blueprint) first."
        )


class InvalidArguments(PenstockError):
    """Arguments that do not fit the job type's signature."""

    def __init__(self, job_type: str, argument: str, expected: str, got: str) -> None:
        self.job_type = job_type
        self.argument = argument
        self.expected = expected
        self.got = got
        super().__init__(
            f"Argument {argument!r} of job type {job_type!r} is wrong: "
            f"expected {expected}, got {got}."
        )

    @classmethod
    def missing(cls, job_type: str, argument: str, expected: str) -> "InvalidArguments":
        """Name a required argument that was not passed."""
        return cls(job_type, argument, expected, "nothing")

    @classmethod
    def unexpected(cls, job_type: str, argument: str, known: Iterable[str]) -> "InvalidArguments":
        """Name an argument that the job type does not take."""
        names = ", ".join(known)
        return cls(
            job_type, argument, f"one of {names}" if names else "no arguments", "an unknown one"
        )


class PayloadTooLarge(PenstockError):
    """A payload or result over the size limit."""

    def __init__(self, job_type: str, size: int, limit: int, what: str = "payload") -> None:
        self.job_type = job_type
        self.size = size
        self.limit = limit
        self.what = what
        super().__init__(
            f"The {what} of job type {job_type!r} is {size:,} bytes, over the limit of {limit:,}; "
            "keep the data elsewhere and pass a reference to it, or raise the limit."
        )


class InvalidOption(PenstockError):
    """An option whose value is out of range or of the wrong form."""

    def __init__(self, option: str, value: object, expected: str) -> None:
        self.option = option
        # The text, not the object: whatever the value is, the error must still pickle.
        self.value = _shortened(value)
        self.expected = expected
        super().__init__(f"Option {option!r} is {self.value}, but it must be {expected}.")


class ResultNotSerializable(PenstockError):
    """A handler returned something that cannot be stored."""

    def __init__(self, job_type: str, result_type: str) -> None:
        self.job_type = job_type
        self.result_type = result_type
        super().__init__(
            f"Job type {job_type!r} returned a {result_type}, which cannot be stored as JSON; "
            "return plain data, a dataclass, a msgspec Struct or a Pydantic model."
        )


class InvalidResult(PenstockError):
    """A handler returned something else than it declares."""

    def __init__(self, job_type: str, problem: str) -> None:
        self.job_type = job_type
        self.problem = problem
        super().__init__(
            f"Job type {job_type!r} returned a value that does not fit its return annotation "
            f"({problem}); return what it declares, or change the annotation."
        )


class CorruptPayload(PenstockError):
    """A stored payload that can no longer be read as its type's arguments."""

    def __init__(self, job_id: str, job_type: str, problem: str) -> None:
        self.job_id = job_id
        self.job_type = job_type
        self.problem = problem
        super().__init__(
            f"The stored payload of job {job_id} is not valid for type {job_type!r} ({problem}); "
            "enqueue the work again with correct arguments. Where a parent's result fills one, "
            "the parent must return what it takes."
        )


class NotFound(PenstockError):
    """Something that was named and is not there."""


class JobNotFound(NotFound):
    """A job id that the store does not know."""

    def __init__(self, job_id: str) -> None:
        self.job_id = job_id
        super().__init__(
            f"The store holds no job {job_id}; check the id and the store, "
            "or it was pruned after its retention time."
        )


class JobFailed(PenstockError):
    """The job whose result was awaited ended without one."""

    def __init__(self, job_id: str, status: str, error: str | None = None) -> None:
        self.job_id = job_id
        self.status = status
        self.error = error
        reason = f": {error}" if error else "."
        super().__init__(f"Job {job_id} ended as {status}{reason}")


class JobCancelled(JobFailed):
    """The job whose result was awaited was cancelled."""

    def __init__(self, job_id: str, error: str | None = None) -> None:
        super().__init__(job_id, "cancelled", error)


class ResultTimeout(PenstockError, TimeoutError):
    """The job had not ended when the wait for its result did."""

    def __init__(self, job_id: str, seconds: float, status: str | None = None) -> None:
        self.job_id = job_id
        self.seconds = seconds
        self.status = status
        state = f" and is still {status}" if status else ""
        super().__init__(
            f"Job {job_id} has no result after {seconds:g} s{state}; "
            f"wait longer, or see `penstock jobs explain {job_id}`."
        )


class KeyTaken(PenstockError):
    """A unique key that another job holds."""

    def __init__(self, key: str, holder: str, job_type: str | None = None) -> None:
        self.key = key
        self.holder = holder
        self.job_type = job_type
        of_type = f" of type {job_type!r}" if job_type else ""
        super().__init__(
            f"Key {key!r}{of_type} is held by job {holder}; "
            "wait until that job gives it up, or cancel it first."
        )


class IllegalTransition(PenstockError):
    """An action that the job's status does not allow."""

    def __init__(self, status: str, action: str, job_id: str | None = None) -> None:
        self.status = status
        self.action = action
        self.job_id = job_id
        subject = f"Job {job_id}" if job_id else "A job"
        super().__init__(f"{subject} is {status}, and from there it does not allow {action!r}.")


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


class MissingExtra(PenstockError):
    """An optional dependency that is not installed."""

    def __init__(self, extra: str, module: str | None = None) -> None:
        self.extra = extra
        self.module = module
        lacking = f"the module {module!r}" if module else "packages that are not installed"
        super().__init__(f"This needs {lacking}; run `pip install 'penstock[{extra}]'`.")


def _revive(
    cls: type[PenstockError], args: tuple[object, ...], fields: dict[str, object]
) -> PenstockError:
    # Past __init__, which takes the fields and not the finished sentence in args.
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(fields)
    return error


def _shortened(value: object, limit: int = 80) -> str:
    try:
        text = repr(value)
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= limit else text[: limit - 1] + "…"
