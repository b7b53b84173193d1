"""URLs of stores, as anybody may read them."""

import re
from urllib.parse import parse_qsl, urlencode

_PLACE = re.compile(r"(\[[^\]]*\]|[^:/,]*)(:\d*)?(,(\[[^\]]*\]|[^:/,]*)(:\d*)?)*(/|$)")
_PLAIN = re.compile(r"[:/]")


def without_password(url: str) -> str:
    """A URL without its secrets, whether or not it is written correctly; a path as it is."""
    base, mark, query = url.partition("?")
    scheme, separator, rest = base.partition("://")
    if not separator:
        return url
    account, at, place = ("", "", rest) if rest.startswith("/") else rest.rpartition("@")
    if not at and ("@" in query.partition("=")[0] or not _PLACE.match(rest)):
        # A password whose special characters end what was meant as the account.
        return f"{scheme}{separator}{_PLAIN.split(rest, maxsplit=1)[0]}:***"
    user, colon, _ = account.partition(":")
    hidden = f"{user}:***" if colon else user
    return f"{scheme}{separator}{hidden}{at}{place}{_harmless(mark, query)}"


def _harmless(mark: str, query: str) -> str:
    given = parse_qsl(query, keep_blank_values=True)
    if not any("password" in name for name, _ in given):
        return f"{mark}{query}"
    kept = [(name, value) for name, value in given if "password" not in name]
    return f"{mark}{urlencode(kept)}" if kept else ""
