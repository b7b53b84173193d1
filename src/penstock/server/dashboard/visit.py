"""One request of a browser: who asks, what the form said, and how to answer with a page."""

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from fastapi import Depends, Request
from markupsafe import Markup
from starlette.responses import HTMLResponse, RedirectResponse

from penstock import __version__
from penstock.client.operator import Operator
from penstock.server.access.identity import Identity
from penstock.server.access.scopes import Scope
from penstock.server.dashboard import flash
from penstock.server.dashboard.flash import Flash
from penstock.server.dashboard.forms import CSRF_FIELD, Form, read_form
from penstock.server.dashboard.links import Links
from penstock.server.dashboard.navigation import pages_for
from penstock.server.dashboard.render import rendered
from penstock.server.guard import Guard, refuse_forgery
from penstock.server.state import Here, Server


class Visit:
    """A caller that was let in, at one page."""

    def __init__(self, request: Request, server: Server, caller: Identity, form: Form) -> None:
        self.request = request
        self.server = server
        self.caller = caller
        self.form = form
        self.links = Links(request)

    @property
    def operator(self) -> Operator:
        """What the caller does to jobs, written into the audit log."""
        return self.server.operator(self.caller)

    @property
    def now(self) -> int:
        """The store's time."""
        return self.server.app.store.clock.now()

    async def page(
        self, template: str, here: str, *, status: int = 200, **context: Any
    ) -> HTMLResponse:
        """Answer with a page; `here` is its path in the navigation.

        Only the content is sent to a page that asks for itself anew, as all do whenever the store
        changed, unless `live=False` is given: for forms that are being filled in.
        """
        again = "hx-request" in self.request.headers
        shown = None if again else self._flash()
        html = rendered(
            template,
            {
                "layout": "fragment.html" if again else "base.html",
                **self.links.names(),
                "csrf": self.csrf,
                "caller": self.caller,
                "may": self._may,
                "pages": await pages_for(self.server, self.caller),
                "here": here,
                "flash": shown,
                "version": __version__,
                "now": self.now,
                "live": True,
                **context,
            },
        )
        answer = HTMLResponse(html, status)
        if shown is not None:
            self.links.drop(answer, flash.COOKIE)
        return answer

    def redirect(self, path: str, text: str = "", *, bad: bool = False) -> RedirectResponse:
        """Send the browser to a page after an action, with a sentence on what became of it."""
        answer = RedirectResponse(self.links.url(path), 303)
        if text and self.caller.csrf is not None:
            kept = flash.written(Flash(text, bad), self.caller.csrf)
            self.links.keep(answer, flash.COOKIE, kept, flash.SECONDS)
        return answer

    def back(self, text: str = "", *, bad: bool = False, otherwise: str = "") -> RedirectResponse:
        """Send the browser to the page it came from."""
        came_from = self.links.inside(self.request.headers.get("referer", ""))
        return self.redirect(otherwise if came_from is None else came_from, text, bad=bad)

    def csrf(self) -> Markup:
        """The hidden field that every form carries."""
        field = Markup('<input type="hidden" name="{}" value="{}">')
        return field.format(CSRF_FIELD, self.caller.csrf or "")

    def _may(self, scope: str) -> bool:
        return self.caller.may(Scope(scope))

    def _flash(self) -> Flash | None:
        kept = self.request.cookies.get(flash.COOKIE)
        if kept is None or self.caller.csrf is None:
            return None
        return flash.read(kept, self.caller.csrf)


def visiting(*scopes: Scope, whole: bool = False) -> Callable[[Request, Server], Awaitable[Visit]]:
    """A dependency that lets in who has the scopes, and only then reads the form it sent."""
    guard = Guard(*scopes, whole=whole)

    async def visit(request: Request, server: Here) -> Visit:
        caller = await guard.admit(request, None)
        form = await read_form(request)
        refuse_forgery(request, caller, form.get(CSRF_FIELD) or None)
        made = Visit(request, server, caller, form)
        request.state.visit = made
        return made

    return visit


EnqueueVisit = Annotated[Visit, Depends(visiting(Scope.ENQUEUE))]
ReadVisit = Annotated[Visit, Depends(visiting(Scope.READ))]
ScheduleVisit = Annotated[Visit, Depends(visiting(Scope.OPERATE, Scope.ENQUEUE))]
OperateVisit = Annotated[Visit, Depends(visiting(Scope.OPERATE))]
ReadAllVisit = Annotated[Visit, Depends(visiting(Scope.READ, whole=True))]
OperateAllVisit = Annotated[Visit, Depends(visiting(Scope.OPERATE, whole=True))]
AdminVisit = Annotated[Visit, Depends(visiting(Scope.ADMIN, whole=True))]
