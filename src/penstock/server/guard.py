"""Every route names the scope it takes, and gets who is asking."""

import time
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.dependencies.models import Dependant
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from msgspec.structs import replace

from penstock.model.store_errors import StoreError
from penstock.operate.health import answered
from penstock.server.access.identity import LOCAL, Identity, Scope, same
from penstock.server.access.users import COOKIE
from penstock.server.problems import Refusal
from penstock.server.state import Here, Server

SAFE = frozenset({"GET", "HEAD", "OPTIONS"})
LOOPBACK = frozenset({"localhost", "127.0.0.1", "[::1]"})
PROXIED = (
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
)
CSRF_HEADER = "X-CSRF-Token"
STORE_SECONDS = 5.0
"""So long the store is waited for; who asks is its first question, whatever is asked."""

bearer_of = HTTPBearer(
    auto_error=False,
    scheme_name="token",
    description="A token made with `penstock tokens create`.",
    bearerFormat="pk_…",
)
Bearer = Annotated[HTTPAuthorizationCredentials | None, Depends(bearer_of)]


class Guard:
    """A dependency that lets in who has the scopes.

    `whole` is for what concerns the whole installation: a caller bound to a tenant is refused.
    """

    def __init__(self, *scopes: Scope, whole: bool = False) -> None:
        self.scopes = scopes
        self.whole = whole

    async def __call__(self, request: Request, server: Here, bearer: Bearer) -> Identity:
        """Who is asking, as it was settled before the request's body was read."""
        settled: Identity = request.state.identity
        return settled

    async def settle(self, request: Request) -> None:
        """Find out who is asking, or refuse them; nothing of the body is read."""
        identity = await self.admit(request, await bearer_of(request))
        refuse_forgery(request, identity)
        request.state.identity = identity

    async def admit(
        self, request: Request, bearer: HTTPAuthorizationCredentials | None
    ) -> Identity:
        """Who is asking, or a refusal; what a browser sends may still be forged."""
        server: Server = request.app.state.server
        identity = await identify(request, server, bearer)
        if identity is None:
            raise Refusal(
                401,
                "Say who you are: send `Authorization: Bearer pk_…` with a token that is valid.",
                headers={"WWW-Authenticate": "Bearer"},
            )
        for scope in self.scopes:
            if not identity.may(scope):
                raise Refusal(403, f"This needs the scope {scope.value!r}, which you do not have.")
        if self.whole and identity.tenant_id is not None:
            raise Refusal(403, "This is about the whole installation, and you belong to a tenant.")
        _limit(server, identity)
        return identity


async def identify(
    request: Request, server: Server, bearer: HTTPAuthorizationCredentials | None
) -> Identity | None:
    """Who is asking: by token, by cookie, or by being on this machine while all are trusted."""
    asked = _identify(request, server, bearer)
    found = await answered(server.app.store, asked, STORE_SECONDS)
    request.state.caller = None if found is None else found.actor
    return found


async def _identify(
    request: Request, server: Server, bearer: HTTPAuthorizationCredentials | None
) -> Identity | None:
    if bearer is not None:
        return await server.tokens.identify(bearer.credentials)
    cookie = request.cookies.get(COOKIE)
    identity = None if cookie is None else await server.sessions.identify(cookie)
    # The cookie of a session that is over takes nothing from who would be let in without one.
    if identity is None and server.trusts_callers and not await server.is_closed():
        _refuse_rebinding(request)
        identity = replace(LOCAL, csrf=await server.csrf())
    return identity


def _refuse_rebinding(request: Request) -> None:
    """A page of somebody else's can have a name of its own point at this machine."""
    host = request.headers.get("host", "").rsplit(":", 1)[0]
    if host not in LOOPBACK:
        raise Refusal(403, "This server answers to localhost only, as long as it knows no users.")
    # nginx, left to itself, adds no header and speaks HTTP/1.0, which browsers do not.
    spoken = request.scope.get("http_version")
    if spoken == "1.0" or any(name in request.headers for name in PROXIED):
        raise Refusal(403, "A proxy asks for somebody, and this server knows no users yet.")


def refuse_other_origins(request: Request) -> None:
    """Refuse what a browser says another site's page has sent."""
    origin = request.headers.get("origin")
    if origin is not None and _host_of(origin) != request.headers.get("host"):
        raise Refusal(403, "The request comes from a page of another site.")
    if request.headers.get("sec-fetch-site") in ("cross-site", "same-site"):
        raise Refusal(403, "The request comes from a page of another site.")


def refuse_forgery(request: Request, identity: Identity, token: str | None = None) -> None:
    """Refuse what a browser sends because another site told it to; `token` is that of a form."""
    if request.method in SAFE or identity.csrf is None:
        return
    refuse_other_origins(request)
    from_browser = "origin" in request.headers or "sec-fetch-site" in request.headers
    if identity.actor == LOCAL.actor and not from_browser:
        return
    given = request.headers.get(CSRF_HEADER) or token
    if given is None or not same(given, identity.csrf):
        raise Refusal(403, f"Send the page's token along, in the header {CSRF_HEADER}.")


def _host_of(origin: str) -> str | None:
    try:
        return urlsplit(origin).netloc
    except ValueError:
        return None


def _limit(server: Server, identity: Identity) -> None:
    callers = [identity.actor]
    if identity.tenant_id is not None:
        callers.append(f"tenant:{identity.tenant_id}")
    seconds = server.rates.wait_for(*callers)
    if seconds:
        told = f"Too many requests; come back in {seconds:.1f} s."
        raise Refusal(429, told, retry_after=seconds)


def guard_of(dependant: Dependant) -> Guard | None:
    """The guard of a route; none if it has none."""
    if isinstance(dependant.call, Guard):
        return dependant.call
    found = (guard_of(each) for each in dependant.dependencies)
    return next((guard for guard in found if guard is not None), None)


MayEnqueue = Annotated[Identity, Depends(Guard(Scope.ENQUEUE))]
MayRead = Annotated[Identity, Depends(Guard(Scope.READ))]
MayOperate = Annotated[Identity, Depends(Guard(Scope.OPERATE))]
MaySchedule = Annotated[Identity, Depends(Guard(Scope.OPERATE, Scope.ENQUEUE))]
MayReadAll = Annotated[Identity, Depends(Guard(Scope.READ, whole=True))]
MayOperateAll = Annotated[Identity, Depends(Guard(Scope.OPERATE, whole=True))]
MayAdmin = Annotated[Identity, Depends(Guard(Scope.ADMIN, whole=True))]


LOOK_SECONDS = 2.0


class Presence:
    """Whether a caller would still be let in: not revoked, not logged out, not changed.

    `bearer` is the token by which it came in; a page knows only cookies.
    """

    def __init__(
        self, request: Request, server: Server, caller: Identity, bearer: Bearer = None
    ) -> None:
        self._request = request
        self._server = server
        self._caller = caller
        self._bearer = bearer
        self._looked_at = time.monotonic()

    async def lasts(self) -> bool:
        """Ask, or say what was found a moment ago."""
        now = time.monotonic()
        if now < self._looked_at + LOOK_SECONDS:
            return True
        self._looked_at = now
        try:
            return await identify(self._request, self._server, self._bearer) == self._caller
        except Refusal:
            return False
        except StoreError:
            return True  # nobody was turned away; it is asked again in a moment
