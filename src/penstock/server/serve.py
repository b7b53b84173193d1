"""Answering on a socket until told to stop."""

import asyncio
import logging
import signal
import socket
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import structlog
import uvicorn

from penstock.server.access_log import Told
from penstock.server.app import create_server
from penstock.server.delivery import Delivery
from penstock.server.door import Door, is_private
from penstock.server.prefix import below
from penstock.server.protocol import Punctual
from penstock.upkeep import upkeep_services
from penstock.worker.worker import new_owner

if TYPE_CHECKING:
    from fastapi import FastAPI

    from penstock.client.app import Penstock
    from penstock.service import Service

log = structlog.get_logger("penstock.server")

GRACE_SECONDS = 3
MAX_CONNECTIONS = 2_000


class Listener(uvicorn.Server):
    """uvicorn, told to stop by us, that says when it answers."""

    def __init__(self, config: uvicorn.Config, on_ready: Callable[[], None]) -> None:
        super().__init__(config)
        self._on_ready = on_ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, then say so."""
        await super().startup(sockets)
        if not self.should_exit:
            self._on_ready()

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Signals are handled by the event loop, which ends live streams first."""
        yield


class Serving:
    """One application's server on one socket, until it is stopped."""

    def __init__(
        self, app: "Penstock", door: Door, taken: socket.socket, *, upkeep: bool = False
    ) -> None:
        self._app = app
        self._door = door
        self._socket = taken
        self._upkeep = upkeep
        self.address = door.address(taken.getsockname()[1])
        self.ready = asyncio.Event()
        self._api: FastAPI = create_server(app, trusts_callers=is_private(taken))
        self._listener = Listener(self.config(), self._answers)

    async def run(self) -> None:
        """Answer until SIGTERM or SIGINT, then end the streams and finish the answers begun."""
        logging.getLogger("uvicorn.error").addFilter(Told())
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.stop)
        async with self._app:
            services: list[Service] = [Delivery(self._app)]
            if self._upkeep:
                services += upkeep_services(self._app, new_owner())
            try:
                for service in services:
                    await service.start()
                await self._listener.serve([self._socket])
            finally:
                await asyncio.gather(*(service.stop() for service in services))
        log.info("server_stopped", address=self.address)

    def stop(self) -> None:
        """Stop; a second call waits for nobody."""
        self._listener.force_exit = self._listener.should_exit
        self._listener.should_exit = True
        self._api.state.server.streams.end()

    def _answers(self) -> None:
        log.info("server_started", address=self.address)
        self.ready.set()

    def config(self) -> uvicorn.Config:
        """How uvicorn answers."""
        door = self._door
        return uvicorn.Config(
            below(self._api, door.root_path),
            ssl_certfile=door.certificate,
            ssl_keyfile=door.key,
            proxy_headers=bool(door.proxies),
            forwarded_allow_ips=door.proxies,
            http=Punctual,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_graceful_shutdown=GRACE_SECONDS,
            access_log=False,
            log_config=None,
            server_header=False,
            ws="none",
        )
