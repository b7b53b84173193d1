"""Logging in and out."""

import re
from typing import Annotated
from urllib.parse import unquote

from fastapi import Query, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from penstock.server.access.secrets import hash_of_secret, random_secret, same
from penstock.server.access.sessions import COOKIE, LIFE_MS
from penstock.server.dashboard.forms import CSRF_FIELD, read_form
from penstock.server.dashboard.links import Links
from penstock.server.dashboard.render import rendered
from penstock.server.dashboard.route import page_router
from penstock.server.guard import identify, refuse_forgery, refuse_other_origins
from penstock.server.problems import Refusal
from penstock.server.state import Here, Server

router = page_router()

LOGIN_COOKIE = "penstock_login"
LOGIN_SECONDS = 3_600
PLACE = re.compile(r"([a-z]+(/[^?]*)?)?([?].*)?")
WRONG = "The name or the password is wrong."

Next = Annotated[str, Query(max_length=2_000)]


@router.get("/login")
async def login_form(request: Request, server: Here, next: Next = "") -> Response:  # noqa: A002
    """The form; who needs none is sent on."""
    links = Links(request)
    if await identify(request, server, None) is not None:
        return RedirectResponse(links.url(within(links, next)), 303)
    return await _form(request, server, next)


@router.post("/login")
async def log_in(request: Request, server: Here) -> Response:
    """Begin a session, or show the form again."""
    refuse_other_origins(request)
    form = await read_form(request)
    _refuse_other_forms(request, form.get(CSRF_FIELD))
    name, goal = form.get("name"), form.get("next")
    password = form.raw("password")
    address = request.client.host if request.client else ""
    try:
        user = await server.logins.enter(name, password, address)
    except Refusal as refusal:
        return await _form(request, server, goal, name=name, problem=refusal)
    if user is None:
        wrong = Refusal(401, WRONG)
        return await _form(request, server, goal, name=name, problem=wrong)
    links = Links(request)
    answer = RedirectResponse(links.url(within(links, goal)), 303)
    if (old := request.cookies.get(COOKIE)) is not None:
        await server.sessions.end(old)
    session = await server.sessions.begin(user)
    # Lax: whoever follows a link to a page from elsewhere is still logged in.
    links.keep(answer, COOKIE, session, LIFE_MS // 1000, samesite="lax")
    links.drop(answer, LOGIN_COOKIE, path="login")
    return answer


@router.post("/logout")
async def log_out(request: Request, server: Here) -> Response:
    """End the session."""
    links = Links(request)
    answer = RedirectResponse(links.url("login"), 303)
    cookie = request.cookies.get(COOKIE)
    caller = await identify(request, server, None)
    if cookie is None or caller is None:
        return answer
    refuse_forgery(request, caller, (await read_form(request)).get(CSRF_FIELD) or None)
    await server.logins.leave(caller.actor, caller.tenant_id)
    await server.sessions.end(cookie)
    links.drop(answer, COOKIE)
    return answer


def within(links: Links, goal: str) -> str:
    """The path to go to, if it is one of this mount; otherwise the first page's."""
    if not PLACE.fullmatch(goal) or ".." in re.split(r"[/\\]", unquote(goal.partition("?")[0])):
        return ""
    return links.inside(f"{links.root}/{goal}") or ""


def _refuse_other_forms(request: Request, token: str) -> None:
    """Nobody is logged in as somebody else by a form that is not ours."""
    secret = request.cookies.get(LOGIN_COOKIE)
    if secret is None or not same(hash_of_secret(secret), token):
        raise Refusal(403, "The form is too old or not of this page; open the login again.")


async def _form(
    request: Request,
    server: Server,
    goal: str,
    *,
    name: str = "",
    problem: Refusal | None = None,
) -> Response:
    links = Links(request)
    secret = request.cookies.get(LOGIN_COOKIE) or random_secret()
    html = rendered(
        "login.html",
        {
            **links.names(),
            "token": hash_of_secret(secret),
            "next": within(links, goal),
            "name": name,
            "problem": problem and problem.detail,
            "nobody": not await server.app.store.records.list("user", limit=1),
        },
    )
    status = 200 if problem is None else problem.status
    answer = HTMLResponse(html, status, dict(problem.headers or {}) if problem else None)
    links.keep(answer, LOGIN_COOKIE, secret, LOGIN_SECONDS, path="login")
    return answer
