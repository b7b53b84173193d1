"""Routes of extensions: who asks is settled first, then the size of the body, then its type."""

import inspect
from collections.abc import AsyncIterable, Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, get_args

import msgspec
from fastapi import Depends, Request, Response
from fastapi.routing import APIRoute
from starlette.responses import StreamingResponse
from starlette.routing import BaseRoute

from penstock.app.arguments import shape_of
from penstock.app.extensions import loaded_part
from penstock.extension import Body, Extension, Route
from penstock.extension import Request as Asked
from penstock.model.errors import InvalidOption, MissingExtra
from penstock.server.access.identity import Identity, Scope
from penstock.server.api.router import ApiRoute, encoded
from penstock.server.bodies import MAX_DEPTH, read_body
from penstock.server.guard import Guard
from penstock.server.problems import COMMON, Refusal
from penstock.server.requests import JSON, PREFIX

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock
    from penstock.config import Settings
    from penstock.server.state import Server

REFS = "#/components/schemas/{name}"
TYPES = ("query", "takes", "gives")
NDJSON = "application/x-ndjson"
CREDENTIALS = frozenset({"authorization", "cookie", "proxy-authorization", "x-csrf-token"})


class ExtensionRoute(ApiRoute):
    """A route that an extension declared."""

    def __init__(self, extension: Extension, route: Route) -> None:
        route = _loaded(extension, route)
        self.extension = extension
        self.declared = route
        fields: tuple[str, ...] = getattr(route.query, "__struct_fields__", ())
        self.names = frozenset(fields)
        guard = Guard(Scope(route.scope), whole=route.whole)

        async def answer(request: Request, caller: Annotated[Identity, Depends(guard)]) -> Response:
            return await self._answer(request, caller)

        super().__init__(
            PREFIX + route.path,
            answer,
            methods=[route.method],
            operation_id=route.name or f"{extension.name}_{_function_name(route.run)}",
            status_code=route.status,
            tags=[extension.name],
            responses=COMMON,
            response_model=None,
            description=f"{route.method} {route.path}",
        )

    @property
    def help(self) -> str:
        """What it does, as its function says."""
        try:
            found = loaded_part(self.extension, self.declared.run).__doc__
        except MissingExtra as error:
            found = str(error)
        return found or f"{self.declared.method} {self.declared.path}."

    @property
    def media(self) -> tuple[str, ...]:
        """The types of the bodies it takes."""
        if self.declared.body is Body.MANY:
            return JSON, NDJSON
        if self.declared.body is Body.NONE:
            return (JSON,)
        return tuple(self.declared.media.split(", "))

    def query_names(self) -> frozenset[str]:
        """The parameters it knows."""
        return self.names

    def limit(self, settings: "Settings") -> int:
        """How many bytes a body may hold."""
        return self.declared.limit

    async def _answer(self, request: Request, caller: Identity) -> Response:
        server: Server = request.app.state.server
        declared = self.declared
        try:
            work = loaded_part(self.extension, declared.run)
        except MissingExtra as error:
            raise Refusal(501, str(error), cause=error) from error
        query = None
        if declared.query is not None:
            query = _converted(dict(request.query_params), declared.query, "query", strict=False)
        found = await work(
            Asked(
                app=server.app,
                actor=caller.actor,
                tenant=caller.tenant_id,
                path=dict(request.path_params),
                query=query,
                body=await self._body(server, request),
                headers=headers_of(request),
            )
        )
        return _response(found, declared)

    async def _body(self, server: "Server", request: Request) -> Any:
        declared = self.declared
        if declared.body is Body.NONE:
            return None
        body = await request.body()
        if declared.body is Body.RAW:
            return body
        decode = _DECODE[declared.body]
        if declared.body is Body.MANY and request.headers["content-type"].startswith(NDJSON):
            decode = _lines
        takes = Any if declared.takes is None else declared.takes
        return await server.reading.of(len(body), lambda: decode(body, takes))


def _loaded(extension: Extension, route: Route) -> Route:
    """A declaration with its types loaded; without its extra, it only says what is missing."""
    lines = route.body is Body.LINES and route.media == JSON
    try:
        return msgspec.structs.replace(
            route,
            media=NDJSON if lines else route.media,
            **{part: loaded_part(extension, getattr(route, part)) for part in TYPES},
        )
    except MissingExtra:
        return msgspec.structs.replace(route, **dict.fromkeys(TYPES))


def describe(document: dict[str, Any], route: ExtensionRoute) -> None:
    """Put into the API's document what a declaration says: parameters, body and answer."""
    declared = route.declared
    operation = document["paths"][route.path_format][declared.method.lower()]
    operation["description"] = inspect.cleandoc(route.help)
    schemas = _Schemas(document["components"]["schemas"], route.extension.name)
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in route.param_convertors
    ]
    parameters += schemas.parameters(declared.query)
    if parameters:
        operation["parameters"] = parameters
    if declared.body is not Body.NONE:
        schema = {} if declared.body is Body.RAW else schemas.of(declared.takes)
        content = {media: {"schema": schema} for media in route.media}
        if declared.body is Body.MANY:
            content[JSON] = {"schema": _one_or_many(schema)}
        optional = type(None) in get_args(declared.takes)
        operation["requestBody"] = {"required": not optional, "content": content}
    answer = operation["responses"].setdefault(str(declared.status), {"description": "Done."})
    answer["content"] = {declared.answers: {"schema": schemas.of(declared.gives)}}


class _Schemas:
    """Puts schemas of types among those of the document; a name that is taken gets a prefix."""

    def __init__(self, known: dict[str, Any], prefix: str) -> None:
        self._known = known
        self._prefix = prefix.title().replace("_", "")

    def of(self, kind: Any) -> dict[str, Any]:
        """The schema of a type."""
        if kind is None:
            return {}
        [schema], parts = msgspec.json.schema_components([kind], ref_template=REFS)
        text = msgspec.json.encode([schema, parts]).decode()
        for name, part in parts.items():
            if self._known.get(name, part) != part:
                text = text.replace(f'"{_ref(name)}"', f'"{_ref(self._prefix + name)}"')
                text = text.replace(f'"{name}":', f'"{self._prefix}{name}":', 1)
        schema, parts = msgspec.json.decode(text)
        self._known.update(parts)
        found: dict[str, Any] = schema
        return found

    def parameters(self, kind: Any) -> list[dict[str, Any]]:
        """The fields of a record as parameters of a query."""
        if kind is None:
            return []
        _, parts = msgspec.json.schema_components([kind], ref_template=REFS)
        schema = parts.pop(kind.__name__)
        self._known.update({name: part for name, part in parts.items() if name not in self._known})
        needed = schema.get("required", ())
        return [
            {"name": name, "in": "query", "required": name in needed, "schema": each}
            for name, each in schema["properties"].items()
        ]


def _one_or_many(schema: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [schema, {"type": "array", "items": schema}]}


def _ref(name: str) -> str:
    return REFS.format(name=name)


def routes_of(app: "Penstock") -> list[ExtensionRoute]:
    """The routes of all enabled extensions."""
    return [ExtensionRoute(each, route) for each in app.extensions for route in each.routes]


def refuse_taken(own: Sequence[BaseRoute], theirs: Sequence[APIRoute]) -> None:
    """Refuse an address that is ours, or that two extensions want."""
    taken = {address for route in own for address in _addresses(route)}
    for route in theirs:
        for method, path in _addresses(route):
            if (method, path) in taken:
                expected = "an address that nothing else has"
                raise InvalidOption("path", f"{method} {path}", expected)
            taken.add((method, path))


def _addresses(route: BaseRoute) -> list[tuple[str, str]]:
    methods: set[str] = getattr(route, "methods", None) or set()
    return [(method, getattr(route, "path_format", "")) for method in sorted(methods)]


def headers_of(request: Request) -> dict[str, str]:
    """The headers of a request, without those that say who is asking."""
    return {name: value for name, value in request.headers.items() if name not in CREDENTIALS}


def _function_name(run: str | Callable[..., Any]) -> str:
    return run.partition(":")[2] if isinstance(run, str) else getattr(run, "__name__", "run")


def _one(body: bytes, takes: Any) -> Any:
    if not body and type(None) in get_args(takes):
        return None
    _refuse_deep(body)
    return _decoded(body, msgspec.json.Decoder(takes), "body")


def _lines(body: bytes, takes: Any) -> list[Any]:
    decoder = msgspec.json.Decoder(takes)
    found = []
    for number, line in enumerate(body.splitlines(), start=1):
        if line.strip():
            _refuse_deep(line)
            found.append(_decoded(line, decoder, f"body, line {number}"))
    return found


def _many(body: bytes, takes: Any) -> list[Any]:
    found = _one(body, list[takes] | takes)
    return found if isinstance(found, list) else [found]


_DECODE = {Body.JSON: _one, Body.LINES: _lines, Body.MANY: _many}


def _refuse_deep(body: bytes) -> None:
    if shape_of(body).depth > MAX_DEPTH:
        raise Refusal(400, f"The body nests deeper than {MAX_DEPTH} levels.")


def _decoded(body: bytes, decoder: "msgspec.json.Decoder[Any]", where: str) -> Any:
    try:
        return read_body(body, decoder.decode)
    except msgspec.ValidationError as error:
        raise _wrong(error, where) from None


def _converted(given: Any, kind: Any, where: str, *, strict: bool) -> Any:
    try:
        return msgspec.convert(given, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise _wrong(error, where) from None


def _wrong(error: msgspec.ValidationError, where: str) -> Refusal:
    """What does not fit: msgspec names the place as `$.field`."""
    words, _, place = str(error).partition(" - at `$")
    field = place.rstrip("`").lstrip(".")
    return Refusal(422, f"{where}: {words}.", field=f"{where.partition(',')[0]}.{field}".strip("."))


def _response(found: Any, route: Route) -> Response:
    if isinstance(found, AsyncIterable):
        return StreamingResponse(found, route.status, media_type=route.answers)
    if isinstance(found, bytes | str):
        return Response(found, route.status, media_type=route.answers)
    if found is None:
        return Response(status_code=204)
    return encoded(found, route.status)
