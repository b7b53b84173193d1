"""Who may enter: tokens for programs and users for people, kept by administrators."""

from typing import Annotated, Any

from fastapi import Query
from starlette.responses import Response

from penstock.model.errors import InvalidOption
from penstock.server.access.identity import LOCAL
from penstock.server.access.scopes import Scope, parse_scopes
from penstock.server.dashboard.confirm import Question, asked_first
from penstock.server.dashboard.route import page_router
from penstock.server.dashboard.visit import Administering, Visit
from penstock.server.problems import Refusal

router = page_router()

LONGEST_NAME = 128
LONGEST_TENANT = 128
DAY_MS = 86_400_000
MOST_DAYS = 36_500

UserName = Annotated[str, Query(max_length=64)]


@router.get("/access")
async def access(visit: Administering) -> Response:
    """All tokens and users."""
    return await _page(visit)


@router.post("/access/tokens")
async def create_token(visit: Administering) -> Response:
    """Make a token; the answer is the only page that shows it."""
    name, tenant = _text(visit, "name", LONGEST_NAME), _tenant(visit)
    if not name:
        raise InvalidOption("name", "", "a word on what the token is for")
    if await _is_open(visit):
        raise InvalidOption(
            "token", name, "made after a user: from then on everybody must log in, and nobody could"
        )
    scopes, life = parse_scopes(visit.form.all("scope")), _life(visit)
    details: dict[str, Any] = {"name": name, "scopes": scopes, "tenant": tenant}
    async with visit.operator.doing("token.create", "tokens", **details):
        _, text = await visit.server.tokens.create(
            name, scopes, by=visit.caller.actor, tenant_id=tenant, expires_in_ms=life
        )
    return await _page(visit, token=text)


@router.post("/access/tokens/revoke")
async def revoke_token(visit: Administering) -> Response:
    """Let a token open nothing any more."""
    token_id = visit.form.get("id")
    known = {token.id: token for token in await visit.server.tokens.all()}
    if token_id not in known:
        raise Refusal(404, "There is no such token.")
    async with visit.operator.doing("token.revoke", f"token:{token_id}"):
        await visit.server.tokens.revoke(token_id)
    return visit.redirect("access", f"The token {known[token_id].name} opens nothing any more.")


@router.post("/access/users")
async def create_user(visit: Administering) -> Response:
    """Make a user; the first one must be able to let others in."""
    name, tenant = _text(visit, "name", 64), _tenant(visit)
    scopes = parse_scopes(visit.form.all("scope"))
    if await _is_open(visit) and (Scope.ADMIN not in scopes or tenant is not None):
        raise InvalidOption(
            "scope", ", ".join(scopes), "admin, of no tenant, for the first user of all"
        )
    details: dict[str, Any] = {"scopes": scopes, "tenant": tenant}
    async with visit.operator.doing("user.create", f"user:{name}", **details):
        await visit.server.users.create(
            name, _password(visit), scopes, by=visit.caller.actor, tenant_id=tenant
        )
    return visit.redirect("access", f"{name} may log in.")


@router.post("/access/users/password")
async def set_password(visit: Administering) -> Response:
    """Give a user another password, which ends their sessions."""
    name = await _known(visit, visit.form.get("name"))
    async with visit.operator.doing("user.password", f"user:{name}"):
        await visit.server.users.set_password(name, _password(visit))
    return visit.redirect("access", f"{name} has another password and must log in again.")


@router.get("/access/users/remove")
async def ask_to_remove(visit: Administering, name: UserName) -> Response:
    """Ask before a user is removed."""
    found = await _known(visit, name)
    question = Question(
        title=f"Remove the user {found}?",
        text="Their sessions end, and they cannot log in any more. What they did stays on record.",
        label="Remove",
        action="access/users/remove",
        back="access",
        hidden={"name": found},
    )
    return await asked_first(visit, "access", question)


@router.post("/access/users/remove")
async def remove_user(visit: Administering) -> Response:
    """Remove a user; nobody removes themselves, so that somebody is left."""
    name = await _known(visit, visit.form.get("name"))
    if visit.caller.actor == f"user:{name}":
        raise InvalidOption("user", name, "somebody else than you")
    async with visit.operator.doing("user.remove", f"user:{name}"):
        await visit.server.users.remove(name)
    return visit.redirect("access", f"{name} may not log in any more.")


async def _page(visit: Visit, token: str | None = None) -> Response:
    return await visit.page(
        "access.html",
        "access",
        live=token is None,
        tokens=(await visit.server.tokens.all())[::-1],
        users=await visit.server.users.all(),
        scopes=list(Scope),
        token=token,
        open_to_all=await _is_open(visit),
    )


async def _is_open(visit: Visit) -> bool:
    """Whether everybody on this machine is let in, because nobody was named yet."""
    return visit.caller.actor == LOCAL.actor and not await visit.server.is_closed()


async def _known(visit: Visit, name: str) -> str:
    if name not in {user.name for user in await visit.server.users.all()}:
        raise Refusal(404, "There is no such user.")
    return name


def _text(visit: Visit, name: str, longest: int) -> str:
    text = visit.form.get(name)
    if len(text) > longest or not text.isprintable():
        raise InvalidOption(name, text, f"plain text of at most {longest} characters")
    return text


def _tenant(visit: Visit) -> str | None:
    return _text(visit, "tenant", LONGEST_TENANT) or None


def _password(visit: Visit) -> str:
    """As it was typed: space around a password belongs to it."""
    return next(iter(visit.form.all("password")), "")


def _life(visit: Visit) -> int | None:
    text = visit.form.get("days")
    if not text:
        return None
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:9]) <= MOST_DAYS:
        raise InvalidOption("days", text, f"a whole number from 1 to {MOST_DAYS:,}")
    return int(text) * DAY_MS
