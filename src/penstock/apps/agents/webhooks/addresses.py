"""Where a webhook may go: URLs, the addresses behind them, and which of those are refused.

A name is resolved once. If any of its addresses is private, in whatever form it is written, nothing
is sent at all; otherwise the connection goes to one of the very addresses that were looked at, so
that a name which means something else a moment later gains nothing.
"""

import asyncio
import re
import socket
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache, lru_cache
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)
from urllib.parse import urlsplit

from msgspec import Struct

from penstock.model.errors import NOT_SHOWN, InvalidOption, PenstockError

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

LONGEST_URL = 2_000
RESOLVERS = 32
PORTS = {"http": 80, "https": 443}
_HOST = re.compile(r"[a-z0-9_]([a-z0-9_.-]{0,251}[a-z0-9_])?\.?")
_URL = re.compile(r"(?i:https?)://[!$-;=?-\[\]_a-z~]+")
"""Printable ASCII without a fragment, blanks, quotes, braces and backslashes."""

# What `ipaddress` calls global is not to be relied on here: it has NAT64, 6to4, site-local and
# multicast addresses wrong.
_REFUSED_4 = [
    ip_network(each)
    for each in (
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",  # a public address that is the host's own service on Azure
        "169.254.0.0/16",
        "172.16.0.0/12",
        "192.0.0.0/24",
        "192.0.2.0/24",
        "192.31.196.0/24",
        "192.52.193.0/24",
        "192.88.99.0/24",
        "192.168.0.0/16",
        "192.175.48.0/24",
        "198.18.0.0/15",
        "198.51.100.0/24",
        "203.0.113.0/24",
        "224.0.0.0/3",
    )
]
_GLOBAL_6 = IPv6Network("2000::/3")
_REFUSED_6 = [
    ip_network(each)
    for each in (
        "2001::/23",  # Teredo, ORCHID and other protocols of their own
        "2001:db8::/32",
        "2002::/16",  # 6to4
        "2620:4f:8000::/48",
        "3fff::/20",
    )
]
_WRAPPING_4 = [IPv6Network(each) for each in ("::/96", "::ffff:0:0/96", "::ffff:0:0:0/96")]
_NAT64 = IPv6Network("64:ff9b::/96")
_ISATAP = {0x0000_5EFE, 0x0200_5EFE}


class Refused(PenstockError):
    """A place that nothing is sent to."""

    def __init__(self, place: str, problem: str) -> None:
        self.place = place
        self.problem = problem
        super().__init__(
            f"Nothing is sent to {place}: {problem}; name a public address, or have the operator "
            "add its network to `allow` under [penstock.agents.webhooks]."
        )


class Target(Struct, frozen=True):
    """What a URL says: where to connect, and what to ask for there."""

    scheme: str
    host: str
    port: int
    path: str

    @property
    def authority(self) -> str:
        """The host as the request names it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def origin(self) -> str:
        """Scheme, host and port, which may be shown: a path may be a secret."""
        return f"{self.scheme}://{self.authority}"


def is_refused(address: Address, allowed: Sequence[Network] = ()) -> bool:
    """Say whether nothing may be sent to an address; `allowed` are networks that are one's own."""
    if any(address in network for network in allowed):
        return False
    if isinstance(address, IPv4Address):
        return any(address in network for network in _REFUSED_4)
    if address.scope_id is not None:
        return True
    inner = _embedded(address)
    if inner is not None and is_refused(inner, allowed):
        return True
    if address in _NAT64:
        return False
    if any(address in network for network in _WRAPPING_4):
        # An embedded address of `allowed` is as good as that address; any other form is odd.
        return inner is None or not any(inner in network for network in allowed)
    return address not in _GLOBAL_6 or any(address in network for network in _REFUSED_6)


def _embedded(address: IPv6Address) -> IPv4Address | None:
    """Return the IPv4 address that an IPv6 address carries, in any of the known ways."""
    bits = int(address)
    if address in _NAT64 or any(address in network for network in _WRAPPING_4):
        return IPv4Address(bits & 0xFFFF_FFFF)
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if (bits >> 32) & 0xFFFF_FFFF in _ISATAP:
        return IPv4Address(bits & 0xFFFF_FFFF)
    return None


@lru_cache(maxsize=1_024)
def networks(written: tuple[str, ...]) -> tuple[Network, ...]:
    """Read the networks of the setting `allow`."""
    found: list[Network] = []
    for each in written:
        try:
            found.append(ip_network(each))
        except ValueError as error:
            raise InvalidOption("allow", each, "a network such as 10.1.0.0/16") from error
    return tuple(found)


@lru_cache(maxsize=4_096)
def parse_url(url: str) -> Target:
    """Read a URL that a webhook may have; InvalidOption if it is none."""
    expected = "an address such as https://example.com/hooks, in ASCII and without a user"
    if len(url) > LONGEST_URL or not _URL.fullmatch(url):
        raise InvalidOption("url", NOT_SHOWN, expected)
    try:
        parts = urlsplit(url)
        port = parts.port
        host = _host(parts.hostname or "")
    except ValueError as error:
        raise InvalidOption("url", NOT_SHOWN, expected) from error
    if not host or "@" in parts.netloc or port == 0:
        raise InvalidOption("url", NOT_SHOWN, expected)
    path = f"{parts.path or '/'}{'?' if parts.query else ''}{parts.query}"
    return Target(parts.scheme, host, port or PORTS[parts.scheme], path)


def _host(written: str) -> str:
    """Return a host as DNS and TLS know it; empty if it is none."""
    if ":" in written:
        return str(IPv6Address(written))
    return written if _HOST.fullmatch(written) else ""


async def resolve(target: Target, allow: Sequence[Network]) -> list[Address]:
    """Return the addresses of a host, in the order to try them; Refused if any is private.

    Plain `http` is for networks of one's own.
    """
    loop = asyncio.get_running_loop()
    found: list[Address] = []
    literal = _literal(target.host)
    if literal is not None:
        found.append(literal)
    else:
        try:
            answers = await loop.run_in_executor(_resolvers(), _look_up, target.host, target.port)
        except UnicodeError as error:  # a label that is too long
            raise OSError(f"{target.host} is no name of a host") from error
        found += dict.fromkeys(map(ip_address, answers))
    for address in found:
        if is_refused(address, allow):
            raise Refused(target.origin, f"its address {address} is not a public one")
        if target.scheme == "http" and not any(address in network for network in allow):
            raise Refused(target.origin, "it would go over the internet unencrypted")
    if not found:
        raise OSError(f"{target.host} has no address")
    return found


@cache
def _resolvers() -> ThreadPoolExecutor:
    """Threads of their own: names that nobody answers for hold up nothing but each other."""
    return ThreadPoolExecutor(RESOLVERS, thread_name_prefix="resolve")


def _look_up(host: str, port: int) -> list[str]:
    answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(answer[4][0]) for answer in answers]


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def check_url(url: str, allow: Sequence[Network]) -> None:
    """Refuse what can be refused before any name is resolved."""
    target = parse_url(url)
    literal = _literal(target.host)
    if literal is not None and is_refused(literal, allow):
        raise Refused(target.origin, "its address is not a public one")
    if target.scheme == "http" and not allow:
        raise Refused(target.origin, "it would go over the internet unencrypted")
