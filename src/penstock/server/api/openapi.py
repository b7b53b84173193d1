"""The API's own document: complete enough that a generated client needs nothing else."""

from collections.abc import Iterator, Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.dependencies.models import Dependant
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema
from starlette.routing import BaseRoute

from penstock.server.access.guard import Guard
from penstock.server.api.models import JobEvent, NewJob
from penstock.server.problems import MEDIA_TYPE, Problem

REFS = "#/components/schemas/{model}"
TAGS = {
    "jobs": "Enqueue jobs, find them, follow them, and act on them.",
    "schedules": "What is enqueued again and again.",
    "dead letters": "What could not be done, in groups, and what a person decides about it.",
    "queues": "How much waits where, and what is held back.",
    "limits": "How much may run or start at once.",
    "breakers": "What waits because something it depends on is down.",
    "workers": "Who runs jobs.",
    "alerts": "What is wrong now, what was, and the rules that say so.",
    "audit": "Who did what.",
    "tokens": "Who may enter.",
    "stats": "What happened in the last minutes, hours or days.",
    "health": "Whether all is well, for people, probes and Prometheus.",
}
DESCRIPTION = """
Every answer is JSON. An error is a problem document (RFC 9457) that names the field that was wrong.
A page is continued by passing its `next` as `before`. Times have a zone. A caller whose token
belongs to a tenant sees that tenant's things and no others: what belongs to somebody else is not
found.
"""


def install(api: FastAPI) -> None:
    """Have an application describe itself this way."""
    make = api.openapi

    def described() -> dict[str, Any]:
        if api.openapi_schema is None:
            _complete(api, make())
        found = api.openapi_schema
        assert found is not None
        return found

    api.description = DESCRIPTION.strip()
    api.openapi_tags = [{"name": name, "description": text} for name, text in TAGS.items()]
    api.openapi = described  # type: ignore[method-assign]


def api_routes(api: FastAPI) -> list[APIRoute]:
    """The routes of the API, without the pages."""
    return [route for route in all_routes(api.routes) if route.include_in_schema]


def all_routes(routes: Sequence[BaseRoute]) -> Iterator[APIRoute]:
    """Routes, those of included routers too, which newer versions of FastAPI keep apart."""
    for route in routes:
        included = getattr(route, "original_router", None)
        if included is not None:
            yield from all_routes(included.routes)
        elif isinstance(route, APIRoute):
            yield route


def guard_of(dependant: Dependant) -> Guard | None:
    """The guard of a route; none if it has none."""
    if isinstance(dependant.call, Guard):
        return dependant.call
    found = (guard_of(each) for each in dependant.dependencies)
    return next((guard for guard in found if guard is not None), None)


def _complete(api: FastAPI, document: dict[str, Any]) -> None:
    schemas = document["components"].setdefault("schemas", {})
    models = [(model, "validation") for model in (Problem, NewJob, JobEvent)]
    _, extra = models_json_schema(models, ref_template=REFS)  # type: ignore[arg-type]
    for name, schema in extra["$defs"].items():
        schemas.setdefault(name, schema)
    for route in api_routes(api):
        for method in route.methods or ():
            operation = document["paths"].get(route.path_format, {}).get(method.lower())
            if operation is not None:
                _complete_operation(operation, guard_of(route.dependant))


def _complete_operation(operation: dict[str, Any], guard: Guard | None) -> None:
    if guard is not None:
        whole = ", and a token that belongs to no tenant" if guard.whole else ""
        needs = f"Needs the scope `{guard.scope.value}`{whole}."
        operation["description"] = f"{operation.get('description', '')}\n\n{needs}".strip()
        operation["x-scope"] = guard.scope.value
    if "requestBody" not in operation:
        operation["responses"].pop("415", None)
        operation["responses"].pop("413", None)
    for status, answer in operation["responses"].items():
        if MEDIA_TYPE in answer.get("content", {}):
            answer["content"][MEDIA_TYPE]["example"] = _example(int(status), answer["description"])


def _example(status: int, phrase: str) -> dict[str, Any]:
    return {
        "type": "about:blank",
        "title": phrase,
        "status": status,
        "detail": "What is wrong with this request, and what to do.",
    }
