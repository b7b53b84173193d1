"""Pages of extensions: shown with their own templates, inside our layout, behind our guard."""

from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Depends
from fastapi.routing import APIRoute
from starlette.responses import Response

from penstock.app.extensions import loaded_part
from penstock.extension import Extension, Page, Request
from penstock.model.errors import MissingExtra
from penstock.server.access.identity import Scope
from penstock.server.dashboard.request import Visit, visiting
from penstock.server.dashboard.route import PageRoute
from penstock.server.problems import Refusal

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock


def page_routes(app: "Penstock") -> list[APIRoute]:
    """The routes of all pages of enabled extensions, in the order of their declaration."""
    return [
        route
        for extension in app.extensions
        for page in extension.pages
        for route in _routes(extension, page)
    ]


def _routes(extension: Extension, page: Page) -> list[APIRoute]:
    reads = visiting(Scope(page.scope), whole=page.whole)
    acts = visiting(Scope(page.acts), whole=page.whole)

    async def shown(visit: Annotated[Visit, Depends(reads)]) -> Response:
        context = await _part(extension, page.show)(_request(visit))
        template = f"{extension.name}/{page.template}"
        return await visit.show(template, _here(extension, page), context)

    async def acted(visit: Annotated[Visit, Depends(acts)]) -> Response:
        sentence = await _part(extension, page.act)(_request(visit))
        here = _here(extension, page) if page.show is None else visit.path
        return visit.back(sentence or "", otherwise=here)

    handlers = (("GET", page.show, shown), ("POST", page.act, acted))
    return [
        PageRoute(f"/{page.path}", handler, methods=[method], include_in_schema=False)
        for method, wanted, handler in handlers
        if wanted is not None
    ]


def _part(extension: Extension, part: Any) -> Any:
    try:
        return loaded_part(extension, part)
    except MissingExtra as error:
        raise Refusal(501, str(error), cause=error) from error


def _here(extension: Extension, page: Page) -> str:
    """Its own place in the navigation, or that of the page above it."""
    if page.title:
        return page.path
    above = [p.path for p in extension.pages if p.title and page.path.startswith(f"{p.path}/")]
    return max(above, key=len, default=page.path)


def _request(visit: Visit) -> Request:
    asked = visit.request
    return Request(
        app=visit.server.app,
        actor=visit.caller.actor,
        tenant=visit.caller.tenant_id,
        path=dict(asked.path_params),
        query=dict(asked.query_params),
        form={name: value.strip() for name, value in reversed(visit.form.fields)},
    )
