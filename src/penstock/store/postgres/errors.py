"""What PostgreSQL and psycopg report, said in penstock's own errors."""

import re
from collections.abc import Callable

import psycopg

from penstock.model.errors import InvalidOption, PenstockError
from penstock.model.store_errors import (
    AccessDenied,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from penstock.store.contract.errors import CORRECT_URL, Translated, not_unicode

NAME_PRIMARY = "it is a standby: name the primary in the URL"
GRANT = "grant it one of the roles that `penstock migrate` made, or connect as the tables' owner"
OTHER_URL = "name that tenant in the URL, or none to work for all of them"
NO_CONNECTION = (
    "it has no connection left for us: raise its max_connections, put PgBouncer before it, or run "
    "fewer processes"
)
MIGRATE = "run `penstock migrate` as the user who owns its tables"

_Translation = Callable[[str, psycopg.Error], PenstockError]
_Error = psycopg.Error | UnicodeEncodeError
_KINDS: tuple[type[_Error], ...] = (psycopg.Error, UnicodeEncodeError)

# Two transactions met, and the server ended one of them so that it may be tried again.
_REPEATABLE = ("40001", "40P01")
_CONTENDED = (*_REPEATABLE, "55P03")
_PLACE = re.compile(
    r"^(?:connection (?:failed|is bad): )?(?:connection to server .*? failed: )?", re.S
)
_REFUSED_ACCOUNT = re.compile(
    r"password authentication failed|no password supplied|role \"[^\"]*\" does not exist"
    r"|no pg_hba\.conf entry|authentication failed|is not permitted to log in"
)
_FULL = re.compile(r"too many clients already|remaining connection slots|too many connections for")
_NO_DATABASE = re.compile(r"database \"([^\"]*)\" does not exist")


def translated(name: str) -> Translated[_Error]:
    """Turn every error of psycopg in a `with` block into one of penstock's."""
    return Translated(name, _KINDS, translate)


def is_repeatable(error: psycopg.Error) -> bool:
    """Whether the transaction did nothing and may simply be run again."""
    return error.sqlstate in _REPEATABLE


def is_contended(error: psycopg.Error) -> bool:
    """Whether the transaction did nothing because others held what it wanted."""
    return error.sqlstate in _CONTENDED


def is_full(error: psycopg.Error) -> bool:
    """Whether the server has no connection left, for anybody or for us."""
    return error.sqlstate == "53300" or _FULL.search(str(error)) is not None


def translate(name: str, error: _Error) -> PenstockError:
    """The penstock error that says what an error of psycopg means for the store."""
    if isinstance(error, UnicodeEncodeError):
        return not_unicode(error)
    code = error.sqlstate
    if code is None:
        return _without_code(name, error)
    found = _BY_CODE.get(code) or _BY_CLASS.get(code[:2])
    if found is not None:
        return found(name, error)
    return StoreError(
        name,
        f"refused a statement ({code}: {_first_line(error)}); "
        "this is a bug in penstock, please report it",
    )


def _without_code(name: str, error: psycopg.Error) -> PenstockError:
    """What failed before, or outside of, a conversation with the server."""
    words = _PLACE.sub("", str(error))
    if is_full(error):
        return StoreUnavailable(name, NO_CONNECTION)
    if _REFUSED_ACCOUNT.search(words):
        return AccessDenied(name, _said(words), CORRECT_URL)
    absent = _NO_DATABASE.search(words)
    if absent is not None:
        reason = f"the server has no database {absent[1]!r}"
        return AccessDenied(name, reason, "create it, or name another one in the URL")
    if isinstance(error, psycopg.errors.ConnectionTimeout):
        return StoreUnavailable(name, "it did not answer in time")
    if isinstance(error, psycopg.DataError):
        return _unfit(name, error)
    if isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return StoreUnavailable(name, _said(words))
    return StoreError(
        name,
        f"cannot take a statement ({_said(words)}); this is a bug in penstock, please report it",
    )


def _said(words: str, limit: int = 200) -> str:
    line = next((line for line in words.splitlines() if line.strip()), "it gave no reason")
    return line.strip().removeprefix("FATAL:").strip(" .")[:limit]


def _first_line(error: psycopg.Error) -> str:
    return _said(error.diag.message_primary or str(error))


def _unavailable(reason: str) -> _Translation:
    return lambda name, _: StoreUnavailable(name, reason)


def _lost(name: str, error: psycopg.Error) -> PenstockError:
    return StoreUnavailable(name, _first_line(error))


def _unfit(_: str, error: psycopg.Error) -> PenstockError:
    """A value that a column cannot hold; what was wrong with it is in PostgreSQL's words."""
    words = _first_line(error)
    if "NUL" in words or "0x00" in words:
        return InvalidOption("text", "one with a NUL character in it", "without it")
    return InvalidOption("value", words, "one that PostgreSQL can hold")


def _no_right(name: str, error: psycopg.Error) -> PenstockError:
    words = _first_line(error)
    if "row-level security" in words:
        return AccessDenied(name, "what it wanted to write is not its tenant's", OTHER_URL)
    return AccessDenied(name, words, GRANT)


def _no_table(name: str, error: psycopg.Error) -> PenstockError:
    # To somebody who may not use the schema the server says that the tables are not there.
    return StoreError(
        name, f"lacks what this penstock needs ({_first_line(error)}); {MIGRATE}, or {GRANT}"
    )


def _contended(name: str, _: psycopg.Error) -> PenstockError:
    return StoreUnavailable(name, "too many transactions met on the same jobs")


_BY_CODE: dict[str, _Translation] = {
    "25006": lambda name, _: StoreReadOnly(name, NAME_PRIMARY),
    "25P03": _unavailable("this process was silent within a transaction for too long"),
    "28000": lambda name, error: AccessDenied(name, _first_line(error), CORRECT_URL),
    "28P01": lambda name, error: AccessDenied(name, _first_line(error), CORRECT_URL),
    "3F000": _no_table,
    "40001": _contended,
    "40P01": _contended,
    "42501": _no_right,
    "42703": _no_table,
    "42883": _no_table,
    "42P01": _no_table,
    "53100": lambda name, _: StoreFull(name),
    "53200": _unavailable("the server ran out of memory"),
    "53300": _unavailable(NO_CONNECTION),
    "54000": _unfit,
    "54001": _unfit,
    "55P03": _unavailable("another session held a lock for too long"),
    "57014": _unavailable("a statement took too long, or somebody cancelled it"),
    "57P01": _unavailable("it is shutting down, or somebody ended this connection"),
    "57P02": _unavailable("it is recovering from a crash"),
    "57P03": _unavailable("it is starting up or shutting down"),
    "XX001": lambda name, error: StoreCorrupt(name, _first_line(error)),
    "XX002": lambda name, error: StoreCorrupt(name, _first_line(error)),
}

_BY_CLASS: dict[str, _Translation] = {
    "08": _lost,
    "22": _unfit,
    "57": _lost,
    "58": _lost,
}
