"""Errors as problem documents (RFC 9457): what is wrong, in which field, and what to do."""

from collections import defaultdict
from collections.abc import Mapping
from http import HTTPStatus
from math import ceil
from typing import Any

import structlog
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse

from penstock.model.errors import (
    AlertNotFiring,
    CanariesUnproven,
    DependencyCycle,
    ForeignTenant,
    IllegalTransition,
    InvalidArguments,
    InvalidCondition,
    InvalidOption,
    InvalidSchedule,
    JobsRunning,
    KeyTaken,
    NotAdmitted,
    ParentNotFound,
    PayloadTooLarge,
    PenstockError,
    QueueFull,
    UnknownType,
    fields_of,
    urn_of,
)
from penstock.model.not_found import NotFound
from penstock.model.store_errors import NoTables, StoreError, StoreFull
from penstock.service import Seldom

log = structlog.get_logger("penstock.server")
_may_warn: defaultdict[type[StoreError], Seldom] = defaultdict(Seldom)

MEDIA_TYPE = "application/problem+json"
AWAY_SECONDS = 1.0
STORE_FULL = "The store is full, and nothing was written; come back later."
STORE_AWAY = "The store cannot do this now; come back later. The server's log says why."
PLACES = frozenset({"store", "reason", "problem", "advice", "moved_to", "other"})
"""What an error of a store knows of where the store is."""


class Problem(BaseModel):
    """What went wrong with a request."""

    type: str = Field(
        "about:blank",
        description="What kind of problem it is, such as `urn:penstock:problem:job-not-found`; "
        "stable. Of `about:blank` the status says everything.",
    )
    title: str = Field(description="The kind of problem in words.")
    status: int = Field(description="The HTTP status.")
    detail: str = Field(description="What is wrong with this request, and what to do.")
    field: str | None = Field(None, description="The field that was wrong, if it was one.")
    about: dict[str, Any] | None = Field(
        None, description="What the problem is about, by name; which names, its type says."
    )


class Refusal(Exception):
    """A request that is answered with a problem document."""

    def __init__(
        self,
        status: int,
        detail: str,
        *,
        field: str | None = None,
        headers: Mapping[str, str] | None = None,
        retry_after: float | None = None,
        cause: PenstockError | None = None,
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.field = field
        self.headers = dict(headers or {})
        if retry_after is not None:
            self.headers["Retry-After"] = str(max(1, ceil(retry_after)))
        self.cause = cause

    @classmethod
    def of(cls, error: PenstockError, *, field: str | None = None) -> "Refusal":
        """How an error of ours is answered."""
        return cls(
            status_of(error),
            told_of(error),
            field=field or field_of(error),
            retry_after=_retry_after(error),
            cause=error,
        )


STATUSES: Mapping[type[PenstockError], int] = {
    NotFound: 404,
    ForeignTenant: 403,
    PayloadTooLarge: 413,
    KeyTaken: 409,
    IllegalTransition: 409,
    CanariesUnproven: 409,
    AlertNotFiring: 409,
    UnknownType: 422,
    InvalidArguments: 422,
    InvalidOption: 422,
    InvalidSchedule: 422,
    InvalidCondition: 422,
    ParentNotFound: 422,
    DependencyCycle: 422,
    NotAdmitted: 403,
    JobsRunning: 409,
    NoTables: 503,
    QueueFull: 429,
    StoreFull: 503,
    StoreError: 503,
}
"""How each error is answered; the first class that fits counts."""

_LATER = {"Retry-After": {"schema": {"type": "integer"}, "description": "Seconds to wait."}}
_HEADERS: Mapping[int, dict[str, Any]] = {
    401: {"WWW-Authenticate": {"schema": {"type": "string"}, "description": "`Bearer`."}},
    429: _LATER,
    503: _LATER,
}

COMMON: dict[int | str, dict[str, Any]] = {
    status: {
        "content": {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}},
        "description": HTTPStatus(status).phrase,
        **({"headers": _HEADERS[status]} if status in _HEADERS else {}),
    }
    for status in (400, 401, 403, 404, 409, 413, 415, 422, 429, 503)
}
"""What any operation may answer besides success."""


def install(app: FastAPI) -> None:
    """Have every error of an application answered this way."""
    app.add_exception_handler(Refusal, _refusal)
    app.add_exception_handler(PenstockError, _penstock)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, http_problem)
    app.add_exception_handler(ClientDisconnect, _hung_up)
    app.add_exception_handler(Exception, _broken)


def problem(
    status: int,
    detail: str,
    *,
    field: str | None = None,
    headers: Mapping[str, str] | None = None,
    cause: PenstockError | None = None,
) -> JSONResponse:
    """A problem document as a response; its type is that of the error that caused it."""
    document = Problem(
        type="about:blank" if cause is None else urn_of(type(cause)),
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        field=field,
        about=None if cause is None else _about(cause),
    )
    return JSONResponse(
        document.model_dump(exclude_none=True),
        status,
        dict(headers) if headers else None,
        MEDIA_TYPE,
    )


def status_of(error: PenstockError) -> int:
    """The HTTP status for an error of ours; what no caller can have caused is the server's."""
    return next((status for kind, status in STATUSES.items() if isinstance(error, kind)), 500)


def field_of(error: PenstockError) -> str | None:
    """The field that an error is about, if it is about one."""
    named = (getattr(error, name, None) for name in ("option", "argument", "field"))
    return next((name for name in named if isinstance(name, str)), None)


def told_of(error: PenstockError) -> str:
    """What callers are told of an error; where the store is, is for the log alone."""
    if not isinstance(error, StoreError):
        return str(error)
    if _may_warn[type(error)]():
        log.warning("store_failed", kind=type(error).__name__, error=str(error))
    return STORE_FULL if isinstance(error, StoreFull) else STORE_AWAY


def mistake(request: Request, error: Exception) -> str:
    """What callers are told of what nobody expected; the log is told everything."""
    request_id = getattr(request.state, "request_id", "")
    log.error("request_failed", request_id=request_id, exc_info=error)
    return f"The server made a mistake; its log says which, under {request_id}."


def _retry_after(error: PenstockError) -> float | None:
    if isinstance(error, QueueFull):
        return error.retry_after
    return AWAY_SECONDS if isinstance(error, StoreError) else None


def _about(error: PenstockError) -> dict[str, Any]:
    known = fields_of(error)
    if isinstance(error, StoreError):
        return {name: value for name, value in known.items() if name not in PLACES}
    return known


async def _refusal(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refusal)
    return problem(
        error.status, error.detail, field=error.field, headers=error.headers, cause=error.cause
    )


async def _penstock(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, PenstockError)
    refusal = Refusal.of(error)
    if refusal.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return await _broken(request, error)
    return await _refusal(request, refusal)


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return problem(422, f"{where}: {first['msg']}.", field=where)


async def _hung_up(_: Request, __: Exception) -> JSONResponse:
    """Nobody is there to read it, and it is no fault of the server's."""
    return problem(400, "The caller hung up before the request was complete.")


async def http_problem(_: Request, error: Exception) -> JSONResponse:
    """What the framework refuses, such as an address that is not there."""
    assert isinstance(error, HTTPException)
    return problem(error.status_code, str(error.detail), headers=error.headers)


async def _broken(request: Request, error: Exception) -> JSONResponse:
    request_id = getattr(request.state, "request_id", "")
    return problem(500, mistake(request, error), headers={"X-Request-ID": request_id})
