"""The door of a server: where it listens, and when other machines may come in."""

import ipaddress
import socket
from typing import TYPE_CHECKING

from msgspec import Struct

from penstock.model.errors import InvalidOption
from penstock.server.access.credentials import any_credentials

if TYPE_CHECKING:
    from penstock.client.app import Penstock

BACKLOG = 1_024


class Door(Struct, frozen=True, kw_only=True):
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


def listen(door: Door) -> socket.socket:
    """Take the address, so that whoever serves it may be replaced without losing it."""
    found = addresses_of(door.host)
    host = next((each for each in found if ":" not in each), found[0])
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    taken = socket.socket(family, socket.SOCK_STREAM)
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((host, door.port))
    except OSError as error:
        taken.close()
        expected = f"free on {door.host} ({error.strerror}); --port 0 takes any that is"
        raise InvalidOption("port", door.port, expected) from None
    taken.listen(BACKLOG)
    return taken


def is_private(taken: socket.socket) -> bool:
    """Whether only this machine can reach what listens there."""
    return ipaddress.ip_address(taken.getsockname()[0]).is_loopback


async def open_door(app: "Penstock", door: Door) -> socket.socket:
    """Take the address, unless other machines could come in and nobody could say who they are."""
    if not door.is_private:
        async with app:
            await refuse_strangers(app, door)
    return listen(door)


async def refuse_strangers(app: "Penstock", door: Door) -> None:
    """Other machines are let in only where they can be asked who they are."""
    if await any_credentials(app.store):
        return
    raise InvalidOption(
        "host",
        door.host,
        "a loopback address such as 127.0.0.1 as long as nobody can log in; make a user with "
        "`penstock users add NAME` or a token with `penstock tokens create NAME` first",
    )
