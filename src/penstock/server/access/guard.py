"""The door: every route names the scope it takes, and gets who is asking."""

from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from msgspec.structs import replace

from penstock.server.access.identity import LOCAL, Identity
from penstock.server.access.scopes import Scope
from penstock.server.access.secrets import same
from penstock.server.access.sessions import COOKIE
from penstock.server.problems import Refusal
from penstock.server.state import Here, Server

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
PROXIED = ("forwarded", "x-forwarded-for", "x-real-ip")
CSRF_HEADER = "X-CSRF-Token"

_bearer = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="A token made with `penstock tokens create`.",
    bearerFormat="pk_…",
)
Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]


class Guard:
    """A dependency that lets in who has a scope.

    `whole` is for what concerns the whole installation: a caller bound to a tenant is refused.
    """

    def __init__(self, scope: Scope, *, whole: bool = False) -> None:
        self.scope = scope
        self.whole = whole

    async def __call__(self, request: Request, server: Here, bearer: Bearer) -> Identity:
        """Who is asking, or a refusal."""
        identity = await identify(request, server, bearer)
        if identity is None:
            raise Refusal(
                401,
                "Say who you are: send `Authorization: Bearer pk_…` with a token that is valid.",
                headers={"WWW-Authenticate": "Bearer"},
            )
        if not identity.may(self.scope):
            raise Refusal(403, f"This needs the scope {self.scope.value!r}, which you do not have.")
        if self.whole and identity.tenant_id is not None:
            raise Refusal(403, "This is about the whole installation, and you belong to a tenant.")
        _limit(server, identity)
        return identity


def require(scope: Scope, *, whole: bool = False) -> Guard:
    """A dependency that lets in who has the scope."""
    return Guard(scope, whole=whole)


async def identify(
    request: Request, server: Server, bearer: HTTPAuthorizationCredentials | None
) -> Identity | None:
    """Who is asking: by token, by cookie, or by being on this machine while all are trusted."""
    if bearer is not None:
        return await server.tokens.identify(bearer.credentials)
    cookie = request.cookies.get(COOKIE)
    identity: Identity | None = None
    if cookie is not None:
        identity = await server.sessions.identify(cookie)
    elif server.trusts_callers and not await server.is_closed():
        _refuse_rebinding(request)
        identity = replace(LOCAL, csrf=server.csrf)
    if identity is not None and request.method not in SAFE:
        _refuse_other_sites(request, identity, by_cookie=cookie is not None)
    return identity


def _refuse_rebinding(request: Request) -> None:
    """A page of somebody else's can have a name of its own point at this machine."""
    host = request.headers.get("host", "").rsplit(":", 1)[0]
    if host not in LOOPBACK:
        raise Refusal(403, "This server answers to localhost only, as long as it knows no users.")
    if any(name in request.headers for name in PROXIED):
        raise Refusal(403, "A proxy asks for somebody, and this server knows no users yet.")


def refuse_other_origins(request: Request) -> None:
    """Refuse what a browser says another site's page has sent."""
    origin = request.headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
        raise Refusal(403, "The request comes from a page of another site.")
    if request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        raise Refusal(403, "The request comes from a page of another site.")


def _refuse_other_sites(request: Request, identity: Identity, *, by_cookie: bool) -> None:
    """What a browser sends because another site told it to changes nothing."""
    refuse_other_origins(request)
    from_browser = "origin" in request.headers or "sec-fetch-site" in request.headers
    if not by_cookie and not from_browser:
        return
    given = request.headers.get(CSRF_HEADER) or getattr(request.state, "csrf", None)
    if identity.csrf is None or given is None or not same(given, identity.csrf):
        raise Refusal(403, f"Send the page's token along, in the header {CSRF_HEADER}.")


def _limit(server: Server, identity: Identity) -> None:
    callers = [identity.actor]
    if identity.tenant_id is not None:
        callers.append(f"tenant:{identity.tenant_id}")
    seconds = server.rates.wait_for(*callers)
    if seconds:
        headers = {"Retry-After": str(max(1, round(seconds)))}
        raise Refusal(429, f"Too many requests; come back in {seconds:.1f} s.", headers=headers)


Enqueuer = Annotated[Identity, Depends(require(Scope.ENQUEUE))]
Reader = Annotated[Identity, Depends(require(Scope.READ))]
Operating = Annotated[Identity, Depends(require(Scope.OPERATE))]
WholeReader = Annotated[Identity, Depends(require(Scope.READ, whole=True))]
WholeOperator = Annotated[Identity, Depends(require(Scope.OPERATE, whole=True))]
Admin = Annotated[Identity, Depends(require(Scope.ADMIN, whole=True))]
