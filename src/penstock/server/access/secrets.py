"""Secrets: made at random, kept as hashes."""

import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode

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
