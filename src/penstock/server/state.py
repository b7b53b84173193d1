"""What every route of one server shares."""

from typing import TYPE_CHECKING, Annotated

from fastapi import Depends, Request

from penstock.client.journal import Journal
from penstock.client.operator import Operator
from penstock.server.access.credentials import any_credentials
from penstock.server.access.identity import Identity
from penstock.server.access.logins import Logins
from penstock.server.access.rates import Rates
from penstock.server.access.secrets import random_secret
from penstock.server.access.sessions import Sessions
from penstock.server.access.tokens import Tokens
from penstock.server.access.users import Users

if TYPE_CHECKING:
    from penstock.client.app import Penstock


class Server:
    """An application and who may use it over HTTP."""

    def __init__(self, app: "Penstock", *, trusts_callers: bool) -> None:
        self.app = app
        self.trusts_callers = trusts_callers
        self.tokens = Tokens(app.store)
        self.users = Users(app.store)
        self.sessions = Sessions(app.store)
        self.journal = Journal(app.store)
        self.logins = Logins(self.users, self.journal)
        self.rates = Rates(app.settings.requests_per_minute)
        self.csrf = random_secret()
        self._closed = False

    async def is_closed(self) -> bool:
        """Whether somebody must say who they are: as soon as there is a token or a user."""
        if not self._closed:
            self._closed = await any_credentials(self.app.store)
        return self._closed

    def operator(self, identity: Identity) -> Operator:
        """What a caller does to jobs, written into the audit log."""
        return Operator(self.app, identity.actor, identity.tenant_id)


async def _server(request: Request) -> Server:
    # A plain function would be run in a thread of its own, for every request.
    found: Server = request.app.state.server
    return found


Here = Annotated[Server, Depends(_server)]
"""The server a route belongs to."""
