"""HTTP as it is spoken here: whoever connects says in good time what they want."""

import asyncio
from collections.abc import Mapping
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEADER_SECONDS = 10.0
BODY_SECONDS = 60.0


class Punctual(H11Protocol):
    """A connection that is closed if its request does not arrive: it would take another's place.

    h11, unlike faster parsers, also bounds how long the headers of a request may be.
    """

    _phase: Any = None
    _ending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Wait for a request, but not for ever."""
        super().connection_made(transport)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """There is nothing left to wait for."""
        self._forget()
        super().connection_lost(exc)

    def handle_events(self) -> None:
        """Read on, and look how far the request has come."""
        super().handle_events()
        self._watch()

    def _watch(self) -> None:
        phase = self.conn.their_state
        if phase is self._phase:
            return
        self._forget()
        self._phase = phase
        seconds = _patience().get(phase)
        if seconds is not None and not self.transport.is_closing():
            self._ending = self.loop.call_later(seconds, self.transport.close)

    def _forget(self) -> None:
        if self._ending is not None:
            self._ending.cancel()
            self._ending = None


def _patience() -> Mapping[Any, float]:
    return {h11.IDLE: HEADER_SECONDS, h11.SEND_BODY: BODY_SECONDS}
