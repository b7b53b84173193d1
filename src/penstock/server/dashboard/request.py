"""One request of a browser: who asks, what its URL and form say, and how to answer with a page."""

import math
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any, Generic, TypeVar
from urllib.parse import parse_qsl

import msgspec
from fastapi import Depends, Request
from markupsafe import Markup
from msgspec import Struct
from pydantic import BaseModel, ValidationError
from starlette.responses import HTMLResponse, RedirectResponse, Response

from penstock import __version__
from penstock.model.errors import InvalidOption, PenstockError, UnknownType
from penstock.operate.actor import Operator
from penstock.server.access.identity import Identity, Scope
from penstock.server.dashboard import links
from penstock.server.dashboard.links import Flash, Links
from penstock.server.dashboard.navigation import groups_for
from penstock.server.dashboard.render import rendered
from penstock.server.guard import SAFE, Guard, refuse_forgery
from penstock.server.problems import Refusal
from penstock.server.state import Here, Server

Q = TypeVar("Q", bound=BaseModel)

LISTS = frozenset({"status", "payload"})
TIMES = frozenset({"since", "until"})
PAGING = frozenset({"before", "limit"})


class Asked(Struct, Generic[Q], frozen=True):
    """What was given, as text, and the question made of it; none if something is wrong."""

    given: dict[str, Any]
    query: Q | None
    problems: dict[str, str]

    @property
    def filters(self) -> dict[str, Any]:
        """What narrows the list, without the place in it."""
        return {name: value for name, value in self.given.items() if name not in PAGING}

    @property
    def narrowed(self) -> bool:
        """Whether it is about more than a status."""
        return bool(self.filters.keys() - {"status"})


def asked(question: type[Q], items: Iterable[tuple[str, str]]) -> Asked[Q]:
    """Read the fields of a URL or a form; empty and unknown ones say nothing."""
    given: dict[str, Any] = {}
    for name, value in items:
        text = value.strip()
        if not text or name not in question.model_fields:
            continue
        if name in LISTS:
            given.setdefault(name, []).append(text)
        else:
            given[name] = text
    try:
        read = {name: _read(name, value) for name, value in given.items()}
        return Asked(given, question.model_validate(read), {})
    except ValidationError as error:
        problems = {str(each["loc"][0]): each["msg"] for each in error.errors()}
        return Asked(given, None, problems)


def _read(name: str, value: Any) -> Any:
    """A browser's time has no zone; pages speak UTC."""
    if name not in TIMES:
        return value
    try:
        moment = datetime.fromisoformat(value)
    except ValueError:
        return value
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


_SAME: Mapping[str, str] = {}


class Entered(Struct, frozen=True):
    """What stands in a form, and what is wrong with it, by field."""

    values: dict[str, str]
    problems: dict[str, str] = {}

    @property
    def status(self) -> int:
        """The HTTP status of the page that shows it."""
        return 422 if self.problems else 200


def problems_of(
    error: Refusal | PenstockError, fields: Collection[str], called: Mapping[str, str] = _SAME
) -> dict[str, str]:
    """What is wrong, at the field it is about; at the payload if the form has no such field.

    `called` says how a form calls what others call differently.
    """
    if isinstance(error, UnknownType):
        return {"type": str(error)}
    found = error if isinstance(error, Refusal) else Refusal.of(error)
    name = (found.field or "").removeprefix("body.")
    field = called.get(name, name)
    return {field if field in fields else "payload": found.detail.removeprefix(f"{found.field}: ")}


MAX_BYTES = 65_536
MAX_FIELDS = 2_000
MOST_WHOLE = 999_999_999_999
CSRF_FIELD = "csrf"
MEDIA_TYPE = "application/x-www-form-urlencoded"


class Form(Struct, frozen=True):
    """Names and values in the order they came."""

    fields: tuple[tuple[str, str], ...] = ()

    def get(self, name: str, default: str = "") -> str:
        """The first value of a field, without the space around it."""
        return next((value.strip() for key, value in self.fields if key == name), default)

    def all(self, name: str) -> list[str]:
        """Every value of a field."""
        return [value for key, value in self.fields if key == name]

    def raw(self, name: str) -> str:
        """The first value as it was typed: space around a password belongs to it."""
        return next(iter(self.all(name)), "")

    def words(self, name: str, most: int) -> str | None:
        """A text of at most so many characters; none if nothing was written."""
        text = self.get(name)
        if len(text) > most:
            raise InvalidOption(name, f"{len(text):,} characters", f"at most {most:,}")
        return text or None

    def whole(self, name: str, *, least: int = 0, most: int = MOST_WHOLE) -> int | None:
        """A whole number; none if nothing was written."""
        text = self.get(name)
        if not text:
            return None
        plain = text.isascii() and text.isdigit() and len(text) <= len(str(MOST_WHOLE))
        if not plain or not least <= int(text) <= most:
            raise InvalidOption(name, text, f"a whole number from {least:,} to {most:,}")
        return int(text)

    def number(self, name: str) -> float | None:
        """A number; none if nothing was written."""
        text = self.get(name)
        try:
            found = float(text) if text else None
        except ValueError:
            found = math.nan
        if found is not None and not math.isfinite(found):
            raise InvalidOption(name, text, "a number")
        return found

    def moment(self, name: str) -> datetime | None:
        """A time, in UTC if it has no zone; none if nothing was written."""
        text = self.get(name)
        try:
            found = datetime.fromisoformat(text) if text else None
        except ValueError:
            raise InvalidOption(name, text, "a time such as 2030-01-31T08:00") from None
        return found if found is None or found.tzinfo else found.replace(tzinfo=UTC)

    def json(self, name: str, default: str = "") -> str:
        """A document, in the fewest characters."""
        try:
            return msgspec.json.encode(msgspec.json.decode(self.get(name) or default)).decode()
        except (msgspec.DecodeError, RecursionError) as error:
            raise Refusal(422, f"This is not JSON: {error}.", field=name) from None


async def read_form(request: Request) -> Form:
    """The form of a request."""
    if request.method in SAFE:
        return Form()
    kind = request.headers.get("content-type", MEDIA_TYPE).partition(";")[0].strip().lower()
    if kind != MEDIA_TYPE:
        raise Refusal(415, f"A page takes only forms, sent as {MEDIA_TYPE}.")
    return Form(_parsed(await _body(request)))


async def _body(request: Request) -> bytes:
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BYTES:
            raise Refusal(413, f"A form may hold at most {MAX_BYTES:,} bytes.")
    return bytes(body)


def _parsed(body: bytes) -> tuple[tuple[str, str], ...]:
    try:
        found = tuple(
            parse_qsl(
                body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS, errors="strict"
            )
        )
    except ValueError:
        raise Refusal(400, "The form cannot be read; send it again from the page.") from None
    if any("\0" in text for pair in found for text in pair):
        raise Refusal(400, "A form cannot hold a NUL character.")
    return found


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
        """The application in the caller's hands; what they do is on record."""
        return self.server.operator(self.caller)

    @property
    def path(self) -> str:
        """The path of the page, below wherever the server is mounted."""
        return self.links.inside(self.request.url.path) or ""

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
        return await self.show(template, here, context, status)

    async def show(
        self, template: str, here: str, context: Mapping[str, Any], status: int = 200
    ) -> HTMLResponse:
        """The same, with whatever names an extension gives to what its template needs."""
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
                "navigation": await groups_for(self.server, self.caller),
                "here": here,
                "flash": shown,
                "version": __version__,
                "now": self.now,
                "live": True,
                **context,
            },
            self.server.templates,
        )
        answer = HTMLResponse(html, status)
        if shown is not None:
            self.links.drop(answer, links.COOKIE)
        return answer

    def redirect(self, path: str, text: str = "", *, bad: bool = False) -> RedirectResponse:
        """Send the browser to a page after an action, with a sentence on what became of it."""
        answer = RedirectResponse(self.links.url(path), 303)
        if text and self.caller.csrf is not None:
            kept = links.written(Flash(text, bad), self.caller.csrf)
            self.links.keep(answer, links.COOKIE, kept, links.SECONDS)
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
        kept = self.request.cookies.get(links.COOKIE)
        if kept is None or self.caller.csrf is None:
            return None
        return links.read(kept, self.caller.csrf)


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


class Question(Struct, frozen=True, kw_only=True):
    """What is asked, what the button says, where it is sent with which fields, and the way back."""

    title: str
    text: str
    label: str
    action: str
    back: str
    facts: Mapping[str, object] = {}
    hidden: Mapping[str, str] = {}


async def ask(visit: Visit, here: str, question: Question) -> Response:
    """Show a question; nothing changes before its form is sent."""
    return await visit.page("confirm.html", here, live=False, question=question)
