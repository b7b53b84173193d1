"""One request of a browser: who asks, what the form said, and how to answer with a page."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any
from urllib.parse import urlencode, urlsplit

from fastapi import Depends, Request
from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse

from penstock import __version__
from penstock.client.operator import Operator
from penstock.server.access.guard import require
from penstock.server.access.identity import Identity
from penstock.server.access.scopes import Scope
from penstock.server.dashboard import assets, notices
from penstock.server.dashboard.forms import CSRF_FIELD, Form, Sent
from penstock.server.dashboard.notices import Notice
from penstock.server.dashboard.pages import Desk
from penstock.server.dashboard.render import rendered
from penstock.server.state import Here, Server


class Links:
    """Addresses below wherever the server is mounted."""

    def __init__(self, request: Request) -> None:
        self.root = str(request.scope.get("root_path", "")).rstrip("/")

    def url(self, path: str, **query: Any) -> str:
        """A page's address: `url("jobs", status="failed")`; what is None or empty is left out."""
        given = {name: value for name, value in query.items() if value not in (None, "", [])}
        asked = f"?{urlencode(given, doseq=True)}" if given else ""
        return f"{self.root}/{path}{asked}"

    def asset(self, name: str) -> str:
        """The address of a style, a script or a picture, as it is now."""
        return self.url(f"static/{name}", v=assets.content_of(name)[1] if assets.has(name) else "")

    def inside(self, address: str) -> str | None:
        """The path of a page of ours that an address leads to; none if it leads elsewhere."""
        parts = urlsplit(address)
        if not parts.path.startswith(f"{self.root}/") or parts.path.startswith("//"):
            return None
        path = parts.path.removeprefix(f"{self.root}/").lstrip("/\\")
        return f"{path}?{parts.query}" if parts.query else path


class Visit:
    """A caller that was let in, at one page."""

    def __init__(self, request: Request, server: Server, caller: Identity, form: Form) -> None:
        self.request = request
        self.server = server
        self.caller = caller
        self.form = form
        self.links = Links(request)
        self.desk: Desk = request.app.state.desk

    @property
    def operator(self) -> Operator:
        """What the caller does to jobs, written into the audit log."""
        return self.server.operator(self.caller)

    @property
    def now(self) -> int:
        """The store's time."""
        return self.server.app.store.clock.now()

    async def page(
        self,
        template: str,
        here: str,
        *,
        status: int = 200,
        notice: Notice | None = None,
        **context: Any,
    ) -> HTMLResponse:
        """Answer with a page; `here` is its path in the navigation.

        Only the content is sent to a page that asks for itself anew, as all do whenever the store
        changed, unless `live=False` is given: for forms that are being filled in.
        """
        again = "hx-request" in self.request.headers
        shown = notice or (None if again else self._notice())
        html = rendered(
            template,
            {
                "layout": "fragment.html" if again else "base.html",
                "url": self.links.url,
                "asset": self.links.asset,
                "has": assets.has,
                "csrf": self.csrf,
                "caller": self.caller,
                "may": self._may,
                "pages": await self.desk.pages(self.caller),
                "here": here,
                "notice": shown,
                "version": __version__,
                "now": self.now,
                "live": True,
                **context,
            },
        )
        answer = HTMLResponse(html, status)
        if shown is not None and notices.COOKIE in self.request.cookies:
            answer.delete_cookie(notices.COOKIE, path=self._cookie_path)
        return answer

    def redirect(self, path: str, text: str = "", *, bad: bool = False) -> RedirectResponse:
        """Send the browser to a page after an action, with a sentence on what became of it."""
        answer = RedirectResponse(self.links.url(path), 303)
        if text and self.caller.csrf is not None:
            answer.set_cookie(
                notices.COOKIE,
                notices.written(Notice(text, bad), self.caller.csrf),
                max_age=notices.SECONDS,
                path=self._cookie_path,
                httponly=True,
                samesite="strict",
                secure=self.request.url.scheme == "https",
            )
        return answer

    def back(self, text: str = "", *, bad: bool = False, otherwise: str = "") -> RedirectResponse:
        """Send the browser to the page it came from."""
        came_from = self.links.inside(self.request.headers.get("referer", ""))
        return self.redirect(otherwise if came_from is None else came_from, text, bad=bad)

    def csrf(self) -> Markup:
        """The hidden field that every form carries."""
        field = Markup('<input type="hidden" name="{}" value="{}">')
        return field.format(CSRF_FIELD, self.caller.csrf or "")

    @property
    def _cookie_path(self) -> str:
        return f"{self.links.root}/"

    def _may(self, scope: str) -> bool:
        return self.caller.may(Scope(scope))

    def _notice(self) -> Notice | None:
        kept = self.request.cookies.get(notices.COOKIE)
        if kept is None or self.caller.csrf is None:
            return None
        return notices.read(kept, self.caller.csrf)


def visiting(
    scope: Scope, *, whole: bool = False
) -> Callable[[Request, Server, Form], Awaitable[Visit]]:
    """A dependency that lets in who has the scope, with the form it sent."""
    guard = require(scope, whole=whole)

    async def visit(request: Request, server: Here, form: Sent) -> Visit:
        made = Visit(request, server, await guard(request, server, None), form)
        request.state.visit = made
        return made

    return visit


Enqueuing = Annotated[Visit, Depends(visiting(Scope.ENQUEUE))]
Reading = Annotated[Visit, Depends(visiting(Scope.READ))]
Operating = Annotated[Visit, Depends(visiting(Scope.OPERATE))]
WholeReading = Annotated[Visit, Depends(visiting(Scope.READ, whole=True))]
WholeOperating = Annotated[Visit, Depends(visiting(Scope.OPERATE, whole=True))]
Administering = Annotated[Visit, Depends(visiting(Scope.ADMIN, whole=True))]
