"""Errors as problem documents (RFC 9457): what is wrong, in which field, and what to do."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse

from penstock.model.error_types import fields_of, urn_of
from penstock.model.errors import (
    IllegalTransition,
    InvalidArguments,
    InvalidOption,
    JobNotFound,
    KeyTaken,
    PayloadTooLarge,
    PenstockError,
    StoreError,
    StoreFull,
    UnknownType,
)
from penstock.model.refused import (
    AlertNotFiring,
    AlertNotFound,
    CanariesUnproven,
    DependencyCycle,
    GroupNotFound,
    InvalidCondition,
    InvalidSchedule,
    ParentNotFound,
    QueueFull,
    ScheduleNotFound,
)

MEDIA_TYPE = "application/problem+json"


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
    ) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.field = field
        self.headers = headers


STATUSES: Mapping[type[PenstockError], int] = {
    JobNotFound: 404,
    GroupNotFound: 404,
    ScheduleNotFound: 404,
    AlertNotFound: 404,
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
    QueueFull: 429,
    StoreFull: 503,
    StoreError: 503,
}
"""How each error is answered; the first class that fits counts."""

_HEADERS: Mapping[int, dict[str, Any]] = {
    401: {"WWW-Authenticate": {"schema": {"type": "string"}, "description": "`Bearer`."}},
    429: {
        "Retry-After": {"schema": {"type": "integer"}, "description": "Seconds to wait."},
    },
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
    app.add_exception_handler(HTTPException, _http)
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
        about=None if cause is None else fields_of(cause),
    )
    return JSONResponse(
        document.model_dump(exclude_none=True),
        status,
        dict(headers) if headers else None,
        MEDIA_TYPE,
    )


def status_of(error: PenstockError) -> int:
    """The HTTP status for an error of ours."""
    return next((status for kind, status in STATUSES.items() if isinstance(error, kind)), 400)


def field_of(error: PenstockError) -> str | None:
    """The field that an error is about, if it is about one."""
    named = (getattr(error, name, None) for name in ("option", "argument", "field"))
    return next((name for name in named if isinstance(name, str)), None)


async def _refusal(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, Refusal)
    behind = error.__cause__
    return problem(
        error.status,
        error.detail,
        field=error.field,
        headers=error.headers,
        cause=behind if isinstance(behind, PenstockError) else None,
    )


async def _penstock(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, PenstockError)
    headers = {}
    if isinstance(error, QueueFull):
        headers["Retry-After"] = str(max(1, round(error.retry_after)))
    return problem(
        status_of(error), str(error), field=field_of(error), headers=headers, cause=error
    )


async def _invalid(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return problem(422, f"{where}: {first['msg']}.", field=where)


async def _hung_up(_: Request, __: Exception) -> JSONResponse:
    """Nobody is there to read it, and it is no fault of the server's."""
    return problem(400, "The caller hung up before the request was complete.")


async def _http(_: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return problem(error.status_code, str(error.detail), headers=error.headers)


async def _broken(_: Request, __: Exception) -> JSONResponse:
    return problem(500, "The server made a mistake; its log says which.")
