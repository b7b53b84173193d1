"""The routers of the API: bodies are read strictly, and unknown words in a query are refused."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from fastapi import APIRouter, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel
from starlette.exceptions import HTTPException

from penstock.client.codec import deeper_than
from penstock.server.problems import COMMON, Refusal

MAX_DEPTH = 100
Handler = Callable[[Request], Awaitable[Response]]


class ApiRequest(Request):
    """A request whose body is JSON as the standard has it: UTF-8, and no NaN."""

    async def json(self) -> Any:
        """The body, decoded."""
        body = await self.body()
        if deeper_than(body.decode("utf-8", "replace"), MAX_DEPTH):
            raise HTTPException(400, f"The body nests deeper than {MAX_DEPTH} levels.")
        return read_body(body, msgspec.json.decode)


class ApiRoute(APIRoute):
    """A route that knows its words."""

    def get_route_handler(self) -> Handler:  # type: ignore[override]
        """The handler, which sees only requests whose query it can read."""
        answer_of = super().get_route_handler()
        known = _query_names(self.dependant)

        async def handle(request: Request) -> Response:
            unknown = sorted(set(request.query_params) - known)
            if unknown:
                listed = f"known are {', '.join(sorted(known))}" if known else "it takes none"
                raise Refusal(
                    422, f"There is no parameter {unknown[0][:64]!r}; {listed}.", field=unknown[0]
                )
            return await answer_of(ApiRequest(request.scope, request.receive))

        return handle


def api_router(prefix: str, tag: str) -> APIRouter:
    """A router for one resource."""
    return APIRouter(prefix=prefix, tags=[tag], responses=COMMON, route_class=ApiRoute)


def read_body(body: bytes, decode: Callable[[bytes], Any]) -> Any:
    """A body, refused if it is no JSON; one that does not fit is the caller's affair."""
    try:
        return decode(body)
    except msgspec.ValidationError:
        raise
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise HTTPException(400, f"The body is no JSON: {error}.") from error


def encoded(value: Any, status: int = 200) -> Response:
    """An answer made without Pydantic, for what is many or large."""
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def _query_names(dependant: Dependant) -> frozenset[str]:
    names: set[str] = set()
    for param in dependant.query_params:
        kind = param.field_info.annotation
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            names |= kind.model_fields.keys()
        else:
            names.add(param.alias)
    for each in dependant.dependencies:
        names |= _query_names(each)
    return frozenset(names)
