"""Secrets: made at random, kept as hashes; what tokens and users have in common."""

import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode

from penstock.model.errors import InvalidOption
from penstock.model.options import MAX_NAME, MAX_TEXT
from penstock.store.contract import Store

_COST = {"n": 2**14, "r": 8, "p": 1}
_SALT_BYTES = 16


def random_secret() -> str:
    """Something nobody guesses: 256 bits, safe in URLs and headers."""
    return secrets.token_urlsafe(32)


def hash_of_secret(secret: str) -> str:
    """What is kept of a random secret; it needs no salt and no stretching, as nobody chose it."""
    return hashlib.sha256(secret.encode()).hexdigest()


def same(one: str, other: str) -> bool:
    """Compare in a time that tells nothing."""
    return hmac.compare_digest(one.encode(), other.encode())


def hash_of_password(password: str) -> str:
    """What is kept of a password somebody chose: salted and slow to try."""
    salt = secrets.token_bytes(_SALT_BYTES)
    return f"scrypt${b64encode(salt).decode()}${b64encode(_stretched(password, salt)).decode()}"


def password_fits(password: str, kept: str) -> bool:
    """Whether a password is the one whose hash was kept."""
    _, salt, expected = kept.split("$")
    return hmac.compare_digest(_stretched(password, b64decode(salt)), b64decode(expected))


def _stretched(password: str, salt: bytes) -> bytes:
    return hashlib.scrypt(password.encode(), salt=salt, **_COST)


async def any_credentials(store: Store) -> bool:
    """Whether there is a token or a user."""
    for kind in ("token", "user"):
        if await store.records.list(kind, limit=1):
            return True
    return False


def checked_name(name: str) -> str:
    """Refuse a name that is none, or that a list could not show."""
    if not _is_plain(name, MAX_NAME):
        raise InvalidOption("name", name, f"plain text of at most {MAX_NAME} characters")
    return name


def checked_tenant(tenant_id: str | None) -> None:
    """Refuse an empty name: the audit log's entries about the installation have that one."""
    if tenant_id is not None and not _is_plain(tenant_id, MAX_TEXT):
        raise InvalidOption("tenant", tenant_id, "the name of a tenant; left out, all of them")


def _is_plain(text: str, longest: int) -> bool:
    return 0 < len(text) <= longest and text.isprintable()
