"""How pages answer: errors are pages too, and whoever is unknown is led to the login."""

from collections.abc import Awaitable, Callable
from http import HTTPStatus

from fastapi import APIRouter, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import HTMLResponse, RedirectResponse, Response

from penstock.model.errors import PenstockError
from penstock.server.dashboard.links import FRESH, SECURITY, Links
from penstock.server.dashboard.render import rendered
from penstock.server.dashboard.request import Visit
from penstock.server.guard import SAFE
from penstock.server.problems import Refusal, http_problem, mistake
from penstock.server.requests import PREFIX

Handler = Callable[[Request], Awaitable[Response]]
REFUSED = (Refusal, PenstockError, RequestValidationError, HTTPException)

NO_PAGE = {
    404: "There is no such page.",
    405: "This address only takes a form; go back to the page that has the form.",
}


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
            except ClientDisconnect:
                raise
            except Exception as error:
                answer = HTMLResponse(error_page(request, 500, mistake(request, error)), 500)
            return _as_page(answer)

        return handle


def page_router() -> APIRouter:
    """A router for pages; they are no part of the API's document."""
    return APIRouter(route_class=PageRoute, include_in_schema=False)


async def no_such_page(request: Request, error: Exception) -> Response:
    """What no route answers: a page for who reads pages, and a problem document for a program."""
    path = request.url.path.removeprefix(Links(request).root)
    if path.startswith(PREFIX) or "text/html" not in request.headers.get("accept", ""):
        return await http_problem(request, error)
    status = _refusal(error).status
    return _as_page(_refused(request, Refusal(status, NO_PAGE.get(status, str(error)))))


def _as_page(answer: Response) -> Response:
    """An answer with the headers of all pages."""
    answer.headers.update(SECURITY)
    answer.headers.setdefault("Cache-Control", FRESH)
    return answer


def _refused(request: Request, error: Exception) -> Response:
    told = _refusal(error)
    if told.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        told = Refusal(told.status, mistake(request, error))
    if told.status == HTTPStatus.UNAUTHORIZED:
        return _to_login(request)
    visit: Visit | None = getattr(request.state, "visit", None)
    if isinstance(error, PenstockError) and visit is not None and request.method not in SAFE:
        return visit.back(told.detail, bad=True)
    page = error_page(request, told.status, told.detail)
    return HTMLResponse(page, told.status, told.headers)


def _refusal(error: Exception) -> Refusal:
    if isinstance(error, Refusal):
        return error
    if isinstance(error, PenstockError):
        return Refusal.of(error)
    if isinstance(error, RequestValidationError):
        first = error.errors()[0]
        return Refusal(422, f"{first['loc'][-1]}: {first['msg']}.")
    assert isinstance(error, HTTPException)
    return Refusal(error.status_code, str(error.detail), headers=error.headers)


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
    context = {
        **Links(request).names(),
        "status": status,
        "title": HTTPStatus(status).phrase,
        "detail": detail,
    }
    return rendered("error.html", context)
