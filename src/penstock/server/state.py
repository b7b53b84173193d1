"""What every route of one server shares."""

from functools import partial
from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from penstock.operate.actor import Operator
from penstock.operate.journal import Journal, kept
from penstock.server.access.identity import Identity, Rates, any_credentials, random_secret
from penstock.server.access.tokens import Tokens
from penstock.server.access.users import Logins, Sessions, Users
from penstock.server.bodies import Reading
from penstock.server.observe import Observer
from penstock.server.streams import Live, Streams
from penstock.server.summary import Fresh, summarise

if TYPE_CHECKING:
    from penstock.app.penstock import Penstock

SUMMARY_SECONDS = 1.0


class Server:
    """An application, who may use it over HTTP, and what is seen and told of it."""

    def __init__(self, app: "Penstock", *, trusts_callers: bool) -> None:
        self.app = app
        self.trusts_callers = trusts_callers
        self.rates = Rates(app.settings.requests_per_minute)
        self.observer = Observer(app)
        self.streams = Streams()
        self.reading = Reading()
        self.summary = Fresh(partial(summarise, app), SUMMARY_SECONDS)
        self.templates = tuple(
            (each.name, each.templates) for each in app.extensions if each.templates
        )
        self.attach()

    def attach(self) -> None:
        """Use the store that the application has now: a test may have put it into memory."""
        store = self.app.store
        self.tokens = Tokens(store)
        self.users = Users(store)
        self.sessions = Sessions(store)
        self.journal = Journal(store)
        self.logins = Logins(self.users, self.journal)
        self.live = Live(store)
        self.observer.attach(store)
        self._csrf: str | None = None
        self._closed = False

    async def is_closed(self) -> bool:
        """Whether somebody must say who they are: as soon as there is a token or a user."""
        if not self._closed:
            self._closed = await any_credentials(self.app.store)
        return self._closed

    async def csrf(self) -> str:
        """What the pages of callers without a session send back; to any process of this server."""
        if self._csrf is None:
            self._csrf = await kept(self.app.store, "secret", "csrf", random_secret)
        return self._csrf

    def operator(self, identity: Identity) -> Operator:
        """The application in a caller's hands; what they do is on record."""
        return Operator(self.app, identity.actor, identity.tenant_id, self.journal)


async def _server(request: Request) -> Server:
    # A plain function would be run in a thread of its own, for every request.
    found: Server = request.app.state.server
    return found


Here = Annotated[Server, Depends(_server)]
"""The server a route belongs to."""
