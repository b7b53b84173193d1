"""The way to a server: `penstock.connect("https://jobs.example.com", token="pk_…")`."""

import re
from ipaddress import ip_address
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from penstock.client.options import check_seconds
from penstock.model.errors import InvalidOption, MissingExtra
from penstock.model.redact import without_password

if TYPE_CHECKING:
    from penstock.client.app import Penstock
    from penstock.client.remote.remote import Remote

_VISIBLE = re.compile(r"[!-~]+")


def connect(
    url: str,
    *,
    token: str | None = None,
    app: "Penstock | None" = None,
    timeout: float = 30,
    patience: float = 60,
    ca: str | None = None,
    plain_http: bool = False,
) -> "Remote":
    """The methods of an application, done by its server: `connect(url, token="pk_…", app=app)`.

    `app` brings the job types; its own store is not touched. A request may take `timeout` seconds,
    and one that can safely be sent again is, for `patience` seconds. `ca` is a file with the
    authorities to trust instead of the system's. A token goes to another machine only over https,
    unless `plain_http` says that the network in between is safe.
    """
    try:
        from penstock.client.remote.remote import Remote
        from penstock.client.remote.wire import Wire
    except ModuleNotFoundError as error:
        if error.name is None or not error.name.startswith("httpx"):
            raise
        raise MissingExtra("remote", error.name) from error
    check_seconds("timeout", timeout)
    check_seconds("patience", patience)
    is_local = _check(url, token, plain_http)
    wire = Wire(url, token, timeout=timeout, patience=patience, ca=ca, is_local=is_local)
    return Remote(wire, app)


def _check(url: str, token: str | None, plain_http: bool) -> bool:
    """Refuse what cannot be reached, or not safely; whether the server is on this machine."""
    given: object = url
    parts = urlsplit(url) if isinstance(given, str) else urlsplit("")
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query:
        shown = without_password(url) if isinstance(given, str) else given
        raise InvalidOption("url", shown, "the address of a server, such as https://example.com")
    if parts.username is not None or parts.password is not None:
        raise InvalidOption("url", without_password(url), "without an account; pass token=…")
    if token is not None and not _VISIBLE.fullmatch(str(token)):
        raise InvalidOption("token", "something else", "a token such as pk_…")
    is_local = _is_loopback(parts.hostname)
    if token is not None and parts.scheme == "http" and not (is_local or plain_http):
        expected = "https, or else everybody in between can read the token (plain_http=True)"
        raise InvalidOption("url", url, expected)
    return is_local


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
