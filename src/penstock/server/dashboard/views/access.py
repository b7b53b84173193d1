"""Logging in and out, and who may enter: tokens and users, kept by administrators."""

import re
from typing import Annotated
from urllib.parse import unquote

from fastapi import Query, Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from penstock.model.errors import InvalidOption
from penstock.server.access.identity import (
    LOCAL,
    Scope,
    hash_of_secret,
    parse_scopes,
    random_secret,
    same,
)
from penstock.server.access.operating import AccessOperator
from penstock.server.access.users import COOKIE, LIFE_MS
from penstock.server.dashboard.links import Links
from penstock.server.dashboard.render import Find, PageNumber, named, piece, rendered
from penstock.server.dashboard.request import (
    CSRF_FIELD,
    AdminVisit,
    Question,
    Visit,
    ask,
    read_form,
)
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
        raise Refusal(403, "The form has expired; open the login page again.")


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


DAY_MS = 86_400_000
MOST_DAYS = 36_500

UserName = Annotated[str, Query(max_length=64)]


@router.get("/access")
async def access(
    visit: AdminVisit, page: PageNumber = 1, users: PageNumber = 1, find: Find = ""
) -> Response:
    """All tokens, the newest first, and all users, by name."""
    return await _page(visit, tokens_page=page, users_page=users, find=find)


@router.post("/access/tokens")
async def create_token(visit: AdminVisit) -> Response:
    """Make a token; the answer is the only page that shows it."""
    name, days = visit.form.get("name"), visit.form.whole("days", least=1, most=MOST_DAYS)
    if await _is_open(visit):
        raise InvalidOption(
            "token", name, "made after a user: from then on everybody must log in, and nobody could"
        )
    _, text = await AccessOperator(visit.operator).create_token(
        name,
        parse_scopes(visit.form.all("scope")),
        tenant_id=visit.form.get("tenant") or None,
        expires_in_ms=None if days is None else days * DAY_MS,
    )
    return await _page(visit, token=text)


@router.post("/access/tokens/revoke")
async def revoke_token(visit: AdminVisit) -> Response:
    """Let a token open nothing any more."""
    revoked = await AccessOperator(visit.operator).revoke_token(visit.form.get("id"))
    return visit.redirect("access", f"The token {revoked.name} is revoked.")


@router.post("/access/users")
async def add_user(visit: AdminVisit) -> Response:
    """Add a user; the first one must be able to let others in."""
    added = await AccessOperator(visit.operator).add_user(
        visit.form.get("name"),
        visit.form.raw("password"),
        parse_scopes(visit.form.all("scope")),
        tenant_id=visit.form.get("tenant") or None,
    )
    return visit.redirect("access", f"{added.name} can log in now.")


@router.post("/access/users/password")
async def set_password(visit: AdminVisit) -> Response:
    """Give a user another password, which ends their sessions."""
    name, password = visit.form.get("name"), visit.form.raw("password")
    await AccessOperator(visit.operator).set_password(name, password)
    return visit.redirect("access", f"{name} has a new password and must log in again.")


@router.get("/access/users/remove")
async def ask_to_remove(visit: AdminVisit, name: UserName) -> Response:
    """Ask before a user is removed."""
    found = await visit.server.users.known(name)
    question = Question(
        title=f"Remove the user {found.name}?",
        text="Their sessions end, and they can no longer log in. What they did stays in the audit "
        "log.",
        label="Remove",
        action="access/users/remove",
        back="access",
        hidden={"name": found.name},
    )
    return await ask(visit, "access", question)


@router.post("/access/users/remove")
async def remove_user(visit: AdminVisit) -> Response:
    """Remove a user; nobody removes themselves, so that somebody is left."""
    removed = await AccessOperator(visit.operator).remove_user(visit.form.get("name"))
    return visit.redirect("access", f"{removed.name} can no longer log in.")


async def _page(
    visit: Visit,
    token: str | None = None,
    *,
    tokens_page: int = 1,
    users_page: int = 1,
    find: str = "",
) -> Response:
    tokens = named(find, reversed(await visit.server.tokens.all()), lambda each: each.name)
    users = named(find, await visit.server.users.all(), lambda each: each.name)
    return await visit.page(
        "access.html",
        "access",
        live=token is None,
        tokens=piece(tokens, tokens_page),
        users=piece(users, users_page),
        find=find,
        scopes=list(Scope),
        token=token,
        open_to_all=await _is_open(visit),
    )


async def _is_open(visit: Visit) -> bool:
    """Whether everybody on this machine is let in, because nobody was named yet."""
    return visit.caller.actor == LOCAL.actor and not await visit.server.is_closed()
