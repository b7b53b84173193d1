"""The routers of the API: bodies are read strictly, and unknown words in a query are refused."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec
from fastapi import APIRouter, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic import BaseModel

from penstock.server.bodies import ApiRequest, bounded, limit_of
from penstock.server.guard import guard_of
from penstock.server.problems import COMMON, Refusal

if TYPE_CHECKING:
    from penstock.config import Settings

Handler = Callable[[Request], Awaitable[Response]]


class ApiRoute(APIRoute):
    """A route that knows who asks before it reads what was sent, and its own words."""

    def get_route_handler(self) -> Handler:  # type: ignore[override]
        """The handler, which sees only requests that may come in and whose query it can read."""
        answer_of = super().get_route_handler()
        known = self.query_names()
        guard = guard_of(self.dependant)

        async def handle(request: Request) -> Response:
            # FastAPI reads the body before it asks any dependency.
            if guard is not None:
                await guard.settle(request)
            unknown = sorted(set(request.query_params) - known)
            if unknown:
                listed = f"known are {', '.join(sorted(known))}" if known else "it takes none"
                raise Refusal(
                    422, f"There is no parameter {unknown[0][:64]!r}; {listed}.", field=unknown[0]
                )
            limit = self.limit(request.app.state.server.app.settings)
            return await answer_of(ApiRequest(request.scope, bounded(request, limit)))

        return handle

    def query_names(self) -> frozenset[str]:
        """The parameters it knows."""
        return _query_names(self.dependant)

    def limit(self, settings: "Settings") -> int:
        """How many bytes a body may hold."""
        return limit_of(self.operation_id, settings)


def api_router(prefix: str, tag: str) -> APIRouter:
    """A router for one resource."""
    return APIRouter(prefix=prefix, tags=[tag], responses=COMMON, route_class=ApiRoute)


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
