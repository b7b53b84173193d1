"""Whoever follows a stream is looked at again while it lasts."""

import time

from fastapi import Request

from penstock.model.errors import StoreError
from penstock.server.access.identity import Identity
from penstock.server.guard import Bearer, identify
from penstock.server.problems import Refusal
from penstock.server.state import Server

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
