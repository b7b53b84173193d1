"""What went wrong with a request, as the error that would have been raised locally."""

from http import HTTPStatus
from typing import Any

import httpx
import msgspec

from penstock.model.error_types import error_of
from penstock.model.errors import AccessDenied, PenstockError, StoreError, StoreUnavailable
from penstock.model.refused import ServerRefused
from penstock.model.retry_after import retry_after_ms

LATER = frozenset({429, 502, 503, 504})
NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
HOPELESS = (httpx.UnsupportedProtocol, httpx.LocalProtocolError, httpx.DecodingError)


class Hitch(Exception):
    """A request that may be sent again: what to raise if it is not, and when to come back.

    `untouched` says that the server surely did nothing.
    """

    def __init__(
        self, error: PenstockError, *, untouched: bool, after: float | None = None
    ) -> None:
        super().__init__(str(error))
        self.error = error
        self.untouched = untouched
        self.after = after


class Told(msgspec.Struct):
    """A problem document."""

    type: str = "about:blank"
    detail: str = ""
    field: str | None = None
    about: dict[str, Any] = {}


def hitch_of(url: str, error: httpx.RequestError) -> PenstockError | Hitch:
    """What a connection that failed means."""
    words = str(error) or type(error).__name__
    told = StoreUnavailable(url, words)
    if isinstance(error, HOPELESS) or "CERTIFICATE_VERIFY_FAILED" in words:
        return told
    return Hitch(told, untouched=isinstance(error, NEVER_SENT))


def problem_of(url: str, answer: httpx.Response, now_ms: int) -> PenstockError | Hitch:
    """What an answer means that is no success."""
    told = _read(answer)
    known = error_of(told.type, told.detail, told.about)
    if isinstance(known, StoreError):
        # Servers do not tell where their stores are; to this process, the server is the store.
        vars(known).setdefault("store", url)
    if isinstance(known, StoreUnavailable):
        vars(known).setdefault("reason", told.detail.rstrip("."))
    error = known or _of_status(url, answer.status_code, told)
    status = answer.status_code
    if status in LATER and isinstance(error, StoreUnavailable | ServerRefused):
        failed = httpx.HTTPStatusError("", request=answer.request, response=answer)
        wait_ms = retry_after_ms(failed, now_ms)
        after = None if wait_ms is None else wait_ms / 1000
        return Hitch(error, untouched=status == HTTPStatus.TOO_MANY_REQUESTS, after=after)
    return error


def not_understood(url: str, error: Exception) -> ServerRefused:
    """An answer that is none of this API, or of another version of it."""
    return ServerRefused(url, 200, f"its answer cannot be read ({error}).")


def _read(answer: httpx.Response) -> Told:
    try:
        return msgspec.json.decode(answer.content, type=Told)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return Told(detail=f"{answer.reason_phrase}.")


def _of_status(url: str, status: int, told: Told) -> PenstockError:
    reason = told.detail.rstrip(".")
    if status == HTTPStatus.UNAUTHORIZED:
        advice = "`penstock tokens create` makes one"
        return AccessDenied(url, "it knows no such token, or no longer", advice)
    if status == HTTPStatus.FORBIDDEN:
        return AccessDenied(url, reason, "use a token that may do this")
    if status in LATER - {HTTPStatus.TOO_MANY_REQUESTS}:
        return StoreUnavailable(url, reason)
    return ServerRefused(url, status, told.detail, told.field)
