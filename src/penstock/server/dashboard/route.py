"""How pages answer: errors are pages too, and whoever is unknown is led to the login."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import HTMLResponse, RedirectResponse, Response

from penstock.model.errors import PenstockError
from penstock.server.access.guard import SAFE
from penstock.server.dashboard import assets
from penstock.server.dashboard.headers import FRESH, SECURITY
from penstock.server.dashboard.render import rendered
from penstock.server.dashboard.visit import Links, Visit
from penstock.server.problems import Refusal, status_of

Handler = Callable[[Request], Awaitable[Response]]
REFUSED = (Refusal, PenstockError, RequestValidationError, HTTPException)


class PageRoute(APIRoute):
    """A route whose answers are for people."""

    def get_route_handler(self) -> Handler:  # type: ignore[override]
        """The handler with its errors turned into pages, and with the headers of all pages."""
        answer_of = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                answer = await answer_of(request)
            except REFUSED as error:
                answer = _refused(request, error)
            answer.headers.update(SECURITY)
            answer.headers.setdefault("Cache-Control", FRESH)
            return answer

        return handle


def page_router() -> APIRouter:
    """A router for pages; they are no part of the API's document."""
    return APIRouter(route_class=PageRoute, include_in_schema=False)


def _refused(request: Request, error: Exception) -> Response:
    status, detail = _told(error)
    if status == HTTPStatus.UNAUTHORIZED:
        return _to_login(request)
    visit: Visit | None = getattr(request.state, "visit", None)
    if isinstance(error, PenstockError) and visit is not None and request.method not in SAFE:
        return visit.back(detail, bad=True)
    headers = getattr(error, "headers", None)
    return HTMLResponse(error_page(request, status, detail), status, headers)


def _told(error: Exception) -> tuple[int, str]:
    if isinstance(error, Refusal):
        return error.status, error.detail
    if isinstance(error, PenstockError):
        return status_of(error), str(error)
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        return 422, f"{first['loc'][-1]}: {first['msg']}."
    assert isinstance(error, HTTPException)
    return error.status_code, str(error.detail)


def _to_login(request: Request) -> Response:
    links = Links(request)
    asked = request.url.path if request.method in SAFE else f"{links.root}/"
    if request.url.query and request.method in SAFE:
        asked = f"{asked}?{request.url.query}"
    login = links.url("login", next=links.inside(asked))
    if "hx-request" in request.headers:
        return Response(status_code=401, headers={"HX-Redirect": login})
    return RedirectResponse(login, 303)


def error_page(request: Request, status: int, detail: str) -> str:
    """A page that says what is wrong."""
    links = Links(request)
    context = {
        "url": links.url,
        "asset": links.asset,
        "has": assets.has,
        "status": status,
        "title": HTTPStatus(status).phrase,
        "detail": detail,
    }
    return rendered("error.html", context)
