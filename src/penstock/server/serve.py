"""Where a server listens, who may come in, and answering on its socket until told to stop."""

import asyncio
import ipaddress
import logging
import signal
import socket
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import h11
import msgspec
import structlog
import uvicorn
from msgspec import Struct
from uvicorn.protocols.http.h11_impl import H11Protocol

from penstock.model.errors import InvalidOption
from penstock.server.access.identity import any_credentials
from penstock.server.app import create_server
from penstock.server.prefix import below
from penstock.server.requests import Told
from penstock.upkeep import upkeep_services
from penstock.upkeep.extensions import extension_services
from penstock.worker.worker import new_owner

if TYPE_CHECKING:
    from fastapi import FastAPI

    from penstock.app.penstock import Penstock

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


BACKLOG = 1_024


class Bind(Struct, frozen=True, kw_only=True):
    """Where a server listens, and what it believes of who comes in.

    `proxies` are the addresses, separated by commas, whose word on the caller's address and
    scheme is taken; `root_path` is the path a proxy has it under; `certificate` and `key` are
    files in PEM.
    """

    host: str
    port: int
    certificate: str | None = None
    key: str | None = None
    proxies: str = ""
    root_path: str = ""

    @property
    def is_private(self) -> bool:
        """Whether only this machine can reach it."""
        return all(ipaddress.ip_address(each).is_loopback for each in addresses_of(self.host))

    def address(self, port: int) -> str:
        """What to type into a browser."""
        scheme = "https" if self.certificate else "http"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{scheme}://{host}:{port}{self.root_path.rstrip('/')}"


def addresses_of(host: str) -> list[str]:
    """The addresses a name stands for; the empty one stands for all of this machine."""
    try:
        found = socket.getaddrinfo(host or None, 0, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise InvalidOption(
            "host", host, f"an address of this machine ({error.strerror})"
        ) from None
    return [str(each[4][0]).partition("%")[0] for each in found]


def listen(bind: Bind) -> socket.socket:
    """Take the address, so that whoever serves it may be replaced without losing it."""
    found = addresses_of(bind.host)
    host = next((each for each in found if ":" not in each), found[0])
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((host, bind.port))
    except OSError as error:
        taken.close()
        expected = f"free on {bind.host} ({error.strerror}); --port 0 takes any that is"
        raise InvalidOption("port", bind.port, expected) from None
    taken.listen(BACKLOG)
    return taken


def is_private(taken: socket.socket) -> bool:
    """Whether only this machine can reach what listens there."""
    return ipaddress.ip_address(taken.getsockname()[0]).is_loopback


async def bind_socket(app: "Penstock", bind: Bind) -> socket.socket:
    """Take the address, unless other machines could come in and nobody could say who they are."""
    if not bind.is_private:
        async with app:
            await refuse_strangers(app, bind)
    return listen(bind)


async def refuse_strangers(app: "Penstock", bind: Bind) -> None:
    """Other machines are let in only where they can be asked who they are."""
    if await any_credentials(app.store):
        return
    raise InvalidOption(
        "host",
        bind.host,
        "a loopback address such as 127.0.0.1 as long as nobody can log in; make a user with "
        "`penstock users add NAME` or a token with `penstock tokens create NAME` first",
    )


class ServerSpec(msgspec.Struct, frozen=True, kw_only=True):
    """All a server process needs to know, passed to it as JSON.

    Without a target it knows the store and no job type.
    """

    bind: Bind
    target: str | None = None
    url: str | None = None
    settings: dict[str, Any] = {}
    upkeep: bool = False
    greeting: str | None = None
    opens_browser: bool = False
    reload: bool = False
    log_json: bool = False
    log_level: str = "info"
    parent_pid: int | None = None


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
        self, app: "Penstock", bind: Bind, taken: socket.socket, *, upkeep: bool = False
    ) -> None:
        self._app = app
        self._bind = bind
        self._socket = taken
        self._upkeep = upkeep
        self.address = bind.address(taken.getsockname()[1])
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
            services = extension_services(self._app)
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
        bind = self._bind
        return uvicorn.Config(
            below(self._api, bind.root_path),
            ssl_certfile=bind.certificate,
            ssl_keyfile=bind.key,
            proxy_headers=bool(bind.proxies),
            forwarded_allow_ips=bind.proxies,
            http=Punctual,
            limit_concurrency=MAX_CONNECTIONS,
            timeout_graceful_shutdown=GRACE_SECONDS,
            access_log=False,
            log_config=None,
            server_header=False,
            ws="none",
        )
