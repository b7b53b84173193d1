"""Who may enter: tokens for programs and users for people, kept by administrators."""

from typing import Annotated

from fastapi import Query
from starlette.responses import Response

from penstock.model.errors import InvalidOption
from penstock.server.access.identity import LOCAL
from penstock.server.access.operating import AccessOperator
from penstock.server.access.scopes import Scope, parse_scopes
from penstock.server.dashboard.confirm import Question, ask
from penstock.server.dashboard.paging import Find, PageNumber, named, piece
from penstock.server.dashboard.route import page_router
from penstock.server.dashboard.visit import AdminVisit, Visit

router = page_router()

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
    return visit.redirect("access", f"The token {revoked.name} opens nothing any more.")


@router.post("/access/users")
async def add_user(visit: AdminVisit) -> Response:
    """Add a user; the first one must be able to let others in."""
    added = await AccessOperator(visit.operator).add_user(
        visit.form.get("name"),
        visit.form.raw("password"),
        parse_scopes(visit.form.all("scope")),
        tenant_id=visit.form.get("tenant") or None,
    )
    return visit.redirect("access", f"{added.name} may log in.")


@router.post("/access/users/password")
async def set_password(visit: AdminVisit) -> Response:
    """Give a user another password, which ends their sessions."""
    name, password = visit.form.get("name"), visit.form.raw("password")
    await AccessOperator(visit.operator).set_password(name, password)
    return visit.redirect("access", f"{name} has another password and must log in again.")


@router.get("/access/users/remove")
async def ask_to_remove(visit: AdminVisit, name: UserName) -> Response:
    """Ask before a user is removed."""
    found = await visit.server.users.known(name)
    question = Question(
        title=f"Remove the user {found.name}?",
        text="Their sessions end, and they cannot log in any more. What they did stays on record.",
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
    return visit.redirect("access", f"{removed.name} may not log in any more.")


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
