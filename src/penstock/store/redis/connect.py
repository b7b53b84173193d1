"""From a URL to connections: where the server is, who we are there, and how long we wait."""

import re
import socket
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import redis
import redis.asyncio
from msgspec import Struct
from msgspec.structs import replace
from redis.asyncio.retry import Retry as AsyncRetry
from redis.backoff import NoBackoff
from redis.retry import Retry

from penstock.model.errors import InvalidOption

SCHEMES = ("redis", "rediss", "unix", "redis+unix")
DEFAULT_NAMESPACE = "penstock"
DEFAULT_PORT = 6379
CONNECT_SECONDS = 5.0
ANSWER_SECONDS = 10.0
IDLE_SECONDS = 30
_NAMESPACE = re.compile(r"[A-Za-z0-9_.:-]{1,64}")
_TLS_OPTIONS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs")


class Address(Struct, frozen=True, kw_only=True):
    """Where an installation is: the server, the account, the database and the namespace."""

    url: str
    namespace: str = DEFAULT_NAMESPACE
    host: str = "localhost"
    port: int = DEFAULT_PORT
    path: str | None = None
    db: int = 0
    username: str | None = None
    password: str | None = None
    tls: dict[str, str] | None = None
    timeout: float = ANSWER_SECONDS
    allow_volatile: bool = False

    @property
    def prefix(self) -> str:
        """What every key begins with; the braces keep all of them on one node of a cluster."""
        return f"{{{self.namespace}}}:"

    def at(self, host: str, port: int) -> "Address":
        """The same installation on another node."""
        return replace(self, host=host, port=port, path=None)


def address_of(url: str, timeout: float = ANSWER_SECONDS) -> Address:
    """Read a URL: `redis://user:secret@host:6379/0?namespace=mail`, `unix:///run/valkey.sock`."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidOption("url", "of this form", "redis://host:6379/0") from None
    if parts.scheme not in SCHEMES:
        raise InvalidOption("url", parts.scheme, "one of " + ", ".join(f"{s}://" for s in SCHEMES))
    options = {name: values[-1] for name, values in parse_qs(parts.query, True).items()}
    known = ("namespace", "db", "timeout", "allow_volatile", *_TLS_OPTIONS)
    for name in options:
        if name not in known:
            raise InvalidOption("url", f"?{name}=", "one with options of " + ", ".join(known))
    on_socket = parts.scheme.endswith("unix")
    if on_socket and (parts.hostname or not parts.path):
        raise InvalidOption(
            "url", parts.path, "written with three slashes: unix:///run/valkey.sock"
        )
    return Address(
        url=url,
        namespace=_namespace(options.get("namespace", DEFAULT_NAMESPACE)),
        host=unquote(parts.hostname or "localhost"),
        port=port or DEFAULT_PORT,
        path=unquote(parts.path) if on_socket else None,
        db=_database(options.get("db") or ("" if on_socket else parts.path.strip("/")) or "0"),
        username=unquote(parts.username) if parts.username else None,
        password=unquote(parts.password) if parts.password else None,
        tls=_tls(parts.scheme, options),
        timeout=_seconds(options.get("timeout", str(timeout))),
        allow_volatile=_yes_or_no("allow_volatile", options.get("allow_volatile", "false")),
    )


def asynchronous(address: Address) -> "redis.asyncio.Connection":
    """A connection for the running event loop, not yet made."""
    kind: type[redis.asyncio.Connection] = redis.asyncio.Connection
    if address.path is not None:
        kind = redis.asyncio.UnixDomainSocketConnection  # type: ignore[assignment]
    elif address.tls is not None:
        kind = redis.asyncio.SSLConnection
    return kind(retry=AsyncRetry(NoBackoff(), 0), **_settings(address))


def synchronous(address: Address) -> "redis.Connection":
    """A connection for a thread, not yet made."""
    kind: type[redis.Connection] = redis.Connection
    if address.path is not None:
        kind = redis.UnixDomainSocketConnection  # type: ignore[assignment]
    elif address.tls is not None:
        kind = redis.SSLConnection
    return kind(retry=Retry(NoBackoff(), 0), **_settings(address))


def _settings(address: Address) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "db": address.db,
        "username": address.username,
        "password": address.password,
        "protocol": 2,
        "client_name": f"penstock-{_label(socket.gethostname())}",
        "socket_connect_timeout": min(CONNECT_SECONDS, address.timeout),
        "socket_timeout": address.timeout,
        "health_check_interval": IDLE_SECONDS,
    }
    if address.path is not None:
        return settings | {"path": address.path}
    settings |= {"host": address.host, "port": address.port, "socket_keepalive": True}
    return settings | (address.tls or {})


def _label(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_.-]", "-", name)


def _namespace(name: str) -> str:
    if not _NAMESPACE.fullmatch(name):
        raise InvalidOption("namespace", name, "1 to 64 letters, digits, dots, colons or dashes")
    return name


def _database(text: str) -> int:
    if not text.isdecimal():
        raise InvalidOption("url", f"/{text}", "one that ends with a database number, such as /0")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0
    if not 0 < seconds <= 600:
        raise InvalidOption("timeout", text, "seconds above 0 and at most 600")
    return seconds


def _yes_or_no(name: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise InvalidOption(name, text, "true or false")
    return text == "true"


def _tls(scheme: str, options: dict[str, str]) -> dict[str, str] | None:
    chosen = {name: options[name] for name in _TLS_OPTIONS if name in options}
    if scheme == "rediss":
        return chosen
    if chosen:
        raise InvalidOption("url", f"{scheme}://", "rediss:// where it names certificates")
    return None
