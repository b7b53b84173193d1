"""The API's own document: complete enough that a generated client needs nothing else."""

from collections.abc import Iterator, Sequence
from typing import Any

from fastapi import FastAPI
from fastapi.routing import APIRoute
from pydantic.json_schema import models_json_schema
from starlette.routing import BaseRoute

from penstock.model.errors import urn_of
from penstock.server.api.extensions import ExtensionRoute, describe
from penstock.server.api.models import JobEvent, NewJob
from penstock.server.guard import Guard, guard_of
from penstock.server.problems import MEDIA_TYPE, STATUSES, Problem

REFS = "#/components/schemas/{model}"
TAGS = {
    "jobs": "Enqueue jobs, find them, follow them, and act on them.",
    "schedules": "What is enqueued again and again.",
    "dead letters": "What could not be done, in groups, and what a person decides about it.",
    "queues": "How much waits where, and what is held back.",
    "limits": "How much may run or start at once.",
    "breakers": "What waits because something it depends on is down.",
    "workers": "Who runs jobs.",
    "followers": "Who is told what becomes of jobs.",
    "audit": "Who did what.",
    "erasures": "What belongs to a tenant or a person, removed everywhere.",
    "tokens": "Who may enter.",
    "stats": "What happened in the last minutes, hours or days.",
    "health": "Whether all is well, for people, probes and Prometheus.",
}
PARAMETERS = {
    "job_id": "The id of the job.",
    "token_id": "The id of the token.",
    "queue": "The name of the queue.",
    "type": "The name of the job type.",
    "category": "The category it was enqueued under.",
    "tenant": "Whose; for callers who belong to no tenant.",
    "workspace": "The workspace it was enqueued for.",
    "tag": "One of its tags.",
    "parent": "The id of the job that enqueued it.",
    "schedule": "The id of the schedule that enqueued it.",
    "group": "The id of the group.",
    "resolution": "What was decided about them.",
    "before": "The `next` of the page before.",
    "limit": "How many at most.",
    "since": "At this time or later.",
    "until": "Before this time.",
    "scope": "What is named: a queue, a type, a tenant, a key or a job.",
    "kind": "Only limits of this kind.",
    "accept": "`application/openmetrics-text` is answered in that format.",
}
"""What parameters mean that say nothing themselves; `name` is that of what the tag says."""
DESCRIPTION = """
Every answer is JSON. An error is a problem document (RFC 9457) that names the field that was wrong;
its `type` says which error it is. Every answer has an `X-Request-ID`, the caller's own if it sent
one, under which the server's log tells more.
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
    extensions = api.state.server.app.extensions
    tags = TAGS | {each.name: each.help or each.title for each in extensions if each.routes}
    api.openapi_tags = [{"name": name, "description": text} for name, text in tags.items()]
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


def _complete(api: FastAPI, document: dict[str, Any]) -> None:
    schemas = document["components"].setdefault("schemas", {})
    models = [(model, "validation") for model in (Problem, NewJob, JobEvent)]
    _, extra = models_json_schema(models, ref_template=REFS)  # type: ignore[arg-type]
    for name, schema in extra["$defs"].items():
        schemas.setdefault(name, schema)
    for route in api_routes(api):
        if isinstance(route, ExtensionRoute):
            describe(document, route)
        for method in route.methods or ():
            operation = document["paths"].get(route.path_format, {}).get(method.lower())
            if operation is not None:
                _complete_operation(operation, method, guard_of(route.dependant))


def _complete_operation(operation: dict[str, Any], method: str, guard: Guard | None) -> None:
    operation["summary"] = operation["description"].partition("\n")[0].rstrip(".")
    for parameter in operation.get("parameters", ()):
        _complete_parameter(parameter, operation["tags"][0])
    if guard is not None:
        whole = ", and a token that belongs to no tenant" if guard.whole else ""
        named = " and ".join(f"`{scope.value}`" for scope in guard.scopes)
        needs = f"Needs the scope{'s' if len(guard.scopes) > 1 else ''} {named}{whole}."
        operation["description"] = f"{operation.get('description', '')}\n\n{needs}".strip()
        operation["x-scopes"] = [scope.value for scope in guard.scopes]
    if "requestBody" not in operation:
        _drop(operation, "413", "415")
    if method == "GET":
        _drop(operation, "409")
    if guard is None:
        _drop(operation, "401", "403", "404")
    for status, answer in operation["responses"].items():
        if MEDIA_TYPE in answer.get("content", {}):
            types = [urn_of(kind) for kind, told in STATUSES.items() if told == int(status)]
            phrase = answer["description"]
            answer["content"][MEDIA_TYPE]["example"] = _example(int(status), phrase, types)
            if types:
                listed = ", ".join(f"`{each}`" for each in types)
                answer["description"] = f"{phrase}; its `type` may be {listed}."


def _complete_parameter(parameter: dict[str, Any], tag: str) -> None:
    if parameter["schema"].get("description"):
        return
    name = parameter["name"]
    default = f"The name of the {tag.removesuffix('s')}." if name == "name" else None
    parameter.setdefault("description", PARAMETERS.get(name, default))


def _drop(operation: dict[str, Any], *statuses: str) -> None:
    """Take away answers that this operation never gives."""
    for status in statuses:
        operation["responses"].pop(status, None)


def _example(status: int, phrase: str, types: list[str]) -> dict[str, Any]:
    return {
        "type": types[0] if types else "about:blank",
        "title": phrase,
        "status": status,
        "detail": "What is wrong with this request, and what to do.",
    }
