"""What Redis and redis-py report, said in penstock's own errors."""

import re
from collections.abc import Callable

import redis
from msgspec.json import encode
from redis.exceptions import (
    AskError,
    AuthenticationWrongNumberOfArgsError,
    ClusterDownError,
    InvalidResponse,
    MasterDownError,
    NoPermissionError,
    OutOfMemoryError,
    TryAgainError,
)

from penstock.model.errors import PenstockError
from penstock.model.store_errors import (
    AccessDenied,
    NotAPenstockStore,
    StoreError,
    StoreFull,
    StoreReadOnly,
    StoreUnavailable,
)
from penstock.store.contract.errors import CORRECT_URL, Translated, not_unicode

GRANT = "give it the commands, keys and channels that docs/guide/redis.md lists"
NAMESPACE = "choose another one with ?namespace= in the URL"
NAME_PRIMARY = "it is a replica: name the primary in the URL"

_Translation = Callable[[str, str], StoreError]
_Error = redis.RedisError | OSError | UnicodeEncodeError
_KINDS: tuple[type[_Error], ...] = (redis.RedisError, OSError, UnicodeEncodeError)

# A script's error carries the code of the command that failed somewhere in its text.
_CODE = re.compile(
    r"\b(OOM|READONLY|MISCONF|NOREPLICAS|NOPERM|NOAUTH|WRONGPASS|CLUSTERDOWN|MASTERDOWN|TRYAGAIN"
    r"|LOADING|BUSY|WRONGTYPE|CROSSSLOT|DENIED|MOVED|ASK|DB index is out of range|ACL failure)\b"
)
_PLACE = re.compile(
    r"^Error (?:\S+ )?(?:connecting to|while (?:reading from|writing to)) \S+ ?[.:]? ?"
)
_IN_SCRIPT = re.compile(r"^(?:ERR )?ACL failure in script: | script: .*$")
_ERRNO = re.compile(r"^\(\d+, ['\"](.*)['\"]\)$|^\[Errno -?\d+\] (.*)$")


def translated(url: str) -> Translated[_Error]:
    """Turn every error of redis-py in a `with` block into one of penstock's."""
    return Translated(url, _KINDS, translate)


def translate(url: str, error: Exception) -> PenstockError:
    """The penstock error that says what an error of redis-py means for the store at `url`."""
    if isinstance(error, UnicodeEncodeError):
        return not_unicode(error)
    for kind, translation in _BY_CLASS.items():
        if isinstance(error, kind):
            return translation(url, str(error))
    code = _CODE.search(str(error))
    if code is not None:
        return _BY_CODE[code[1]](url, str(error))
    if isinstance(error, redis.ConnectionError | OSError):
        return StoreUnavailable(url, _why(error))
    detail = _first_line(str(error))
    return StoreError(
        url, f"refused a command ({detail}); this is a bug in penstock, please report it"
    )


def encoded(value: object) -> bytes:
    """A value as JSON; text in it that is no Unicode is refused."""
    try:
        return encode(value)
    except UnicodeEncodeError as error:
        raise not_unicode(error) from error


def foreign_data(url: str) -> NotAPenstockStore:
    """The namespace is somebody else's."""
    return NotAPenstockStore(url, "other data in this namespace", NAMESPACE)


def _why(error: Exception) -> str:
    words = _ERRNO.sub(r"\1\2", _first_line(_PLACE.sub("", str(error))).strip(" ."))
    if "max number of clients" in words:
        return "it has no connection left for us, raise its maxclients"
    if words.startswith("Connect call failed"):
        return "the connection was refused"
    return words or type(error).__name__


def _first_line(text: str, limit: int = 200) -> str:
    return (text.splitlines() or [""])[0][:limit]


def _unavailable(reason: str) -> _Translation:
    return lambda url, _: StoreUnavailable(url, reason)


def _denied(reason: str, advice: str) -> _Translation:
    return lambda url, _: AccessDenied(url, reason, advice)


def _no_permission(url: str, words: str) -> StoreError:
    told = _IN_SCRIPT.sub("", _first_line(words.rpartition("NOPERM ")[2]))
    return AccessDenied(url, told.rstrip("."), GRANT)


def _full(url: str, _: str) -> StoreError:
    return StoreFull(url, "in its memory (maxmemory)")


def _elsewhere(url: str, _: str) -> StoreError:
    return StoreUnavailable(url, "its part of the cluster is being moved to another node")


_lonely = _unavailable("it is a replica that lost its primary")
_wrong_password = _denied("wrong user name or password", CORRECT_URL)

_BY_CLASS: dict[type[Exception], _Translation] = {
    redis.TimeoutError: _unavailable("it did not answer in time"),
    redis.BusyLoadingError: _unavailable("it is still loading its data"),
    redis.AuthenticationError: _wrong_password,
    AuthenticationWrongNumberOfArgsError: _wrong_password,
    NoPermissionError: _no_permission,
    OutOfMemoryError: _full,
    redis.ReadOnlyError: lambda url, _: StoreReadOnly(url, NAME_PRIMARY),
    AskError: _elsewhere,
    TryAgainError: _elsewhere,
    InvalidResponse: _unavailable("what answers there does not speak the protocol of Redis"),
    MasterDownError: _lonely,  # before the next one, of which redis-py makes it a kind
    ClusterDownError: _unavailable("its cluster is down"),
}

_BY_CODE: dict[str, _Translation] = {
    "OOM": _full,
    "READONLY": lambda url, _: StoreReadOnly(url, NAME_PRIMARY),
    "MISCONF": _unavailable("it cannot write to its disk and takes no writes, see its log"),
    "NOREPLICAS": _unavailable("it has fewer replicas than its min-replicas-to-write demands"),
    "NOPERM": _no_permission,
    "ACL failure": _no_permission,
    "NOAUTH": _wrong_password,
    "WRONGPASS": _wrong_password,
    "DENIED": _denied("it is in protected mode", "set a password and name it in the URL"),
    "CLUSTERDOWN": _unavailable("its cluster is down"),
    "MASTERDOWN": _lonely,
    "TRYAGAIN": _elsewhere,
    "MOVED": _elsewhere,
    "ASK": _elsewhere,
    "LOADING": _unavailable("it is still loading its data"),
    "BUSY": _unavailable("it is busy with a script"),
    "WRONGTYPE": lambda url, _: foreign_data(url),
    "DB index is out of range": _unavailable("it has no database of this number"),
    "CROSSSLOT": _unavailable("a proxy in front of it spreads one namespace over several nodes"),
}
