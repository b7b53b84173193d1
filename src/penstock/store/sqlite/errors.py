"""What SQLite reports, said in penstock's own errors."""

from collections.abc import Callable

import apsw

from penstock.model.errors import InvalidOption, PenstockError
from penstock.model.store_errors import (
    NotAPenstockStore,
    StoreClosed,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreIsDirectory,
    StoreReadOnly,
    StoreUnavailable,
)
from penstock.store.contract.errors import Translated, not_unicode
from penstock.store.sqlite.files import lost

NOT_SQLITE = "something that is not a SQLite database"

_Translation = Callable[[str, apsw.Error], StoreError]
_Error = apsw.Error | UnicodeEncodeError | OverflowError | TypeError
_KINDS: tuple[type[_Error], ...] = (apsw.Error, UnicodeEncodeError, OverflowError, TypeError)


def translated(path: str) -> Translated[_Error]:
    """Turn every error of apsw in a `with` block into one of penstock's."""
    return Translated(path, _KINDS, translate)


def in_our_words(path: str, error: BaseException) -> BaseException:
    """The same of an error that was caught; one that is none of apsw's stays as it is."""
    try:
        with translated(path):
            raise error
    except BaseException as ours:
        return ours


def translate(path: str, error: _Error) -> PenstockError | None:
    """The penstock error that says what an error of apsw means for the store at `path`."""
    if not isinstance(error, apsw.Error):
        return _unfit(error)
    code = getattr(error, "extendedresult", 0)
    if code in _BY_CODE:
        return _BY_CODE[code](path, error)
    for kind, translation in _BY_CLASS.items():
        if isinstance(error, kind):
            return translation(path, error)
    return StoreError(
        path, f"refused a statement ({_detail(error)}); this is a bug in penstock, please report it"
    )


def _unfit(error: UnicodeEncodeError | OverflowError | TypeError) -> InvalidOption | None:
    """What to say about a value that SQLite cannot hold; none if the error is about another."""
    if isinstance(error, UnicodeEncodeError):
        return not_unicode(error)
    if isinstance(error, OverflowError):
        return InvalidOption("number", "too large", "a whole number of at most 64 bits")
    words = str(error)
    if words.startswith("Bad binding argument type"):
        return InvalidOption("value", words.rpartition("type ")[2], "a text or a number")
    return None


def _unavailable(reason: str) -> _Translation:
    return lambda path, _: StoreUnavailable(path, reason)


def _broken_disk(path: str, error: apsw.Error) -> StoreError:
    return StoreUnavailable(path, f"its disk failed: {_detail(error)}")


def _corrupt(path: str, error: apsw.Error) -> StoreError:
    return StoreCorrupt(path, _detail(error))


def _detail(error: apsw.Error) -> str:
    code = getattr(error, "extendedresult", 0)
    names = apsw.mapping_extended_result_codes
    name = names.get(code) or apsw.mapping_result_codes.get(code) or type(error).__name__
    return f"{name}: {error}" if str(error) else str(name)


_BY_CODE: dict[int, _Translation] = {
    apsw.SQLITE_CANTOPEN_ISDIR: lambda path, _: StoreIsDirectory(path),
    # Growing the shared memory beside the WAL fails like this when the disk is full.
    apsw.SQLITE_IOERR_SHMSIZE: lambda path, _: StoreFull(path),
    apsw.SQLITE_IOERR_CORRUPTFS: _corrupt,
    apsw.SQLITE_IOERR_DATA: _corrupt,
    apsw.SQLITE_READONLY_DBMOVED: lambda path, _: lost(path),
}

_BY_CLASS: dict[type[apsw.Error], _Translation] = {
    apsw.BusyError: _unavailable("another connection held its lock for too long"),
    apsw.LockedError: _unavailable("another connection held its lock for too long"),
    apsw.ProtocolError: _unavailable("too many connections contend for its lock"),
    apsw.InterruptError: _unavailable("the operation was interrupted"),
    apsw.NoMemError: _unavailable("this process ran out of memory"),
    apsw.CantOpenError: _unavailable("its file cannot be opened"),
    apsw.IOError: _broken_disk,
    apsw.FullError: lambda path, _: StoreFull(path),
    apsw.CorruptError: _corrupt,
    apsw.NotADBError: lambda path, _: NotAPenstockStore(path, NOT_SQLITE),
    apsw.ReadOnlyError: lambda path, _: StoreReadOnly(path),
    apsw.PermissionsError: lambda path, _: StoreReadOnly(path),
    apsw.ConnectionClosedError: lambda path, _: StoreClosed(path),
    apsw.CursorClosedError: lambda path, _: StoreClosed(path),
}
