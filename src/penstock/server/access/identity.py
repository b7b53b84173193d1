"""Who is asking, what they may do and how often, and the secrets they prove it with."""

import hashlib
import hmac
import secrets
from base64 import b64decode, b64encode
from collections.abc import Iterable
from enum import StrEnum
from time import monotonic

from msgspec import Struct

from penstock.model.errors import InvalidOption
from penstock.model.options import MAX_NAME, MAX_TEXT
from penstock.store.contract import Store


class Scope(StrEnum):
    """One kind of permission."""

    ENQUEUE = "enqueue"
    RECORD = "record"
    """Send telemetry, and nothing else."""
    READ = "read"
    OPERATE = "operate"
    ADMIN = "admin"


_INCLUDED = {
    Scope.ENQUEUE: frozenset({Scope.ENQUEUE}),
    Scope.RECORD: frozenset({Scope.RECORD}),
    Scope.READ: frozenset({Scope.READ}),
    Scope.OPERATE: frozenset({Scope.OPERATE, Scope.READ}),
    Scope.ADMIN: frozenset(Scope),
}


def including(scopes: Iterable[Scope]) -> frozenset[Scope]:
    """These scopes with all they include."""
    return frozenset().union(*(_INCLUDED[scope] for scope in scopes))


def parse_scopes(names: Iterable[str]) -> tuple[Scope, ...]:
    """Scopes by their names, each once, in the order of the enumeration."""
    given = list(names)
    for name in given:
        if name not in set(Scope):
            raise InvalidOption("scope", name, f"one of: {', '.join(Scope)}")
    if not given:
        raise InvalidOption("scope", "nothing", f"at least one of: {', '.join(Scope)}")
    return tuple(scope for scope in Scope if scope in given)


class Identity(Struct, frozen=True, kw_only=True):
    """A caller that was let in.

    `actor` is what the audit log calls it. `tenant_id` binds it to one tenant; None sees all of
    them. `csrf` is set for browsers, whose forms must send it back.
    """

    actor: str
    scopes: tuple[Scope, ...]
    tenant_id: str | None = None
    csrf: str | None = None

    def may(self, scope: Scope) -> bool:
        """Whether it has a scope, or one that includes it."""
        return scope in including(self.scopes)


LOCAL = Identity(actor="local", scopes=(Scope.ADMIN,))
"""Whoever reaches a server that listens on this machine only and knows no credentials."""


BUCKETS = 10_000


class Bucket(Struct):
    """What is left to spend, and when that was."""

    left: float
    at: float


class Rates:
    """Refuses who asks too often; each process of a server counts for itself."""

    def __init__(self, per_minute: int) -> None:
        self._per_second = per_minute / 60
        self._capacity = max(1.0, per_minute / 6)
        self._buckets: dict[str, Bucket] = {}

    def __len__(self) -> int:
        """How many callers are remembered."""
        return len(self._buckets)

    def wait_for(self, *callers: str) -> float:
        """Spend one request of each; the seconds to wait if one of them has none left."""
        if not self._per_second:
            return 0.0
        now = monotonic()
        buckets = [self._bucket(caller, now) for caller in callers]
        poorest = min((bucket.left for bucket in buckets), default=1.0)
        if poorest < 1:
            return (1 - poorest) / self._per_second
        for bucket in buckets:
            bucket.left -= 1
        return 0.0

    def _bucket(self, caller: str, now: float) -> Bucket:
        bucket = self._buckets.get(caller)
        if bucket is None:
            if len(self._buckets) >= BUCKETS:
                self._forget_full(now)
            bucket = self._buckets[caller] = Bucket(self._capacity, now)
        bucket.left = min(self._capacity, bucket.left + (now - bucket.at) * self._per_second)
        bucket.at = now
        return bucket

    def _forget_full(self, now: float) -> None:
        """One that has filled up again is as good as new."""
        filled_at = now - self._capacity / self._per_second
        self._buckets = {c: b for c, b in self._buckets.items() if b.at > filled_at}
        if len(self._buckets) >= BUCKETS:
            # A flood of callers, each of them new: the oldest make room, and memory stays bounded.
            for caller in list(self._buckets)[: BUCKETS // 10]:
                del self._buckets[caller]


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
