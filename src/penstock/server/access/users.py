"""Users for people: passwords, logging in, and browser sessions."""

import asyncio
import re
from asyncio import sleep
from functools import cache
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

from msgspec import Struct
from msgspec.json import decode, encode
from msgspec.structs import replace

from penstock.model.errors import InvalidOption
from penstock.model.not_found import UserNotFound
from penstock.operate.documents import document
from penstock.operate.journal import Journal
from penstock.server.access.identity import (
    Identity,
    Rates,
    Scope,
    hash_of_password,
    hash_of_secret,
    password_fits,
    random_secret,
)
from penstock.server.problems import Refusal
from penstock.store.contract import Store
from penstock.store.contract.records import every

KIND = "user"
SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 1_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@+-]{0,63}")


@cache
def nobodys_hash() -> str:
    """A hash to try against where there is no user."""
    return hash_of_password("nobody")


class User(Struct, frozen=True, kw_only=True):
    """Who may log in, and what they may do then."""

    name: str
    scopes: tuple[Scope, ...]
    tenant_id: str | None
    password: str
    created_by: str
    created_at: int


class Users:
    """Made, listed, changed and removed."""

    def __init__(self, store: Store) -> None:
        self._store = store

    async def create(
        self,
        name: str,
        password: str,
        scopes: tuple[Scope, ...],
        *,
        by: str,
        tenant_id: str | None = None,
    ) -> User:
        """Make a user; a name that is taken is refused."""
        user = User(
            name=checked_user_name(name),
            scopes=scopes,
            tenant_id=tenant_id,
            password=await _hashed(password),
            created_by=by,
            created_at=self._store.clock.now(),
        )
        if await self._store.records.put(KIND, name, encode(user).decode(), revision=0) is None:
            raise InvalidOption("user", name, "a name that nobody has yet")
        return user

    async def all(self) -> list[User]:
        """Every user, by name."""
        return [
            decode(record.document, type=User) async for record in every(self._store.records, KIND)
        ]

    async def get(self, name: str) -> User | None:
        """One user, or none."""
        record = await self._store.records.get(KIND, name)
        return None if record is None else decode(record.document, type=User)

    async def known(self, name: str) -> User:
        """One user, or UserNotFound."""
        user = await self.get(name)
        if user is None:
            raise UserNotFound(name)
        return user

    async def set_password(self, name: str, password: str) -> User:
        """Give a user another password."""
        hashed = await _hashed(password)
        while True:
            record = await self._store.records.get(KIND, name)
            if record is None:
                raise UserNotFound(name)
            changed = replace(decode(record.document, type=User), password=hashed)
            text, seen = encode(changed).decode(), record.revision
            # Whoever was removed meanwhile does not come back.
            if await self._store.records.put(KIND, name, text, revision=seen) is not None:
                return changed

    async def remove(self, name: str) -> User:
        """Remove a user; its sessions end with it."""
        user = await self.known(name)
        await self._store.records.remove(KIND, name)
        return user

    async def check(self, name: str, password: str) -> User | None:
        """The user, if the password is right; an unknown name takes as long to refuse."""
        user = await self.get(name) if _NAME.fullmatch(name) else None
        kept = user.password if user else await asyncio.to_thread(nobodys_hash)
        # In a thread, as it is slow on purpose, and others are waiting.
        right = await asyncio.to_thread(password_fits, password[:LONGEST_PASSWORD], kept)
        return user if right and user is not None else None


async def _hashed(password: str) -> str:
    return await asyncio.to_thread(hash_of_password, checked_password(password))


def checked_user_name(name: str) -> str:
    """Refuse a name that nobody could be called by."""
    if not _NAME.fullmatch(name):
        raise InvalidOption("user", name, "letters, digits and _.@+-, 64 at most")
    return name


def checked_password(password: str) -> str:
    """Refuse a password that is too short to be one."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise InvalidOption(
            "password",
            "***",
            f"between {SHORTEST_PASSWORD} and {LONGEST_PASSWORD:,} characters long",
        )
    return password


def user_document(user: User) -> dict[str, Any]:
    """What is known of a user, without the password's hash."""
    told = document(user)
    del told["password"]
    return told


SESSION_KIND = "session"
COOKIE = "penstock_session"
LIFE_MS = 12 * 3_600_000


class Session(Struct, frozen=True, kw_only=True):
    """Somebody who logged in."""

    user: str
    csrf: str
    password: str
    started_at: int


class Sessions:
    """Begun by a login, ended by a logout, a change of the password, or time."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._users = Users(store)

    async def begin(self, user: User) -> str:
        """Let a user in; the value of the cookie."""
        cookie = random_secret()
        session = Session(
            user=user.name,
            csrf=random_secret(),
            password=hash_of_secret(user.password),
            started_at=self._store.clock.now(),
        )
        await self._store.records.put(
            SESSION_KIND, hash_of_secret(cookie), encode(session).decode(), expires_in_ms=LIFE_MS
        )
        return cookie

    async def end(self, cookie: str) -> None:
        """Forget a session."""
        await self._store.records.remove(SESSION_KIND, hash_of_secret(cookie))

    async def identify(self, cookie: str) -> Identity | None:
        """Who a cookie stands for; none if it is unknown or over, or its user changed."""
        record = await self._store.records.get(SESSION_KIND, hash_of_secret(cookie))
        if record is None:
            return None
        session = decode(record.document, type=Session)
        user = await self._users.get(session.user)
        if user is None or hash_of_secret(user.password) != session.password:
            return None
        return Identity(
            actor=f"user:{user.name}",
            scopes=user.scopes,
            tenant_id=user.tenant_id,
            csrf=session.csrf,
        )


TRIES_PER_NAME_AND_ADDRESS = 30
TRIES_PER_ADDRESS = 120
TRIES_PER_NAME = 60
"""A minute; a sixth of it at once."""

MOST_WAIT_SECONDS = 2.0
AT_ONCE = 4
"""So many passwords are compared at a time: each takes a core and 16 MiB for a while."""


class Logins:
    """The tries of one process to log in, each of them on record."""

    def __init__(self, users: Users, journal: Journal) -> None:
        self._users = users
        self._journal = journal
        self._pairs = Rates(TRIES_PER_NAME_AND_ADDRESS)
        self._addresses = Rates(TRIES_PER_ADDRESS)
        self._names = Rates(TRIES_PER_NAME)
        self._turns = asyncio.Semaphore(AT_ONCE)

    async def enter(self, name: str, password: str, address: str) -> User | None:
        """The user of a name and a password, or none; whoever tries too often is refused."""
        whose, named = neighbourhood(address), name[:64]
        seconds = self._addresses.wait_for(whose) or self._pairs.wait_for(f"{whose} {named}")
        if seconds:
            raise Refusal(429, "Too many tries; wait a moment.", retry_after=seconds)
        if slowed := self._names.wait_for(named):
            await sleep(min(slowed, MOST_WAIT_SECONDS))
        async with self._turns:
            user = await self._users.check(name, password)
        if user is None:
            # Not the name: somebody may have typed the password there.
            told = {"name_hash": await self._journal.keyed_hash(name)}
            await self._journal.write("unknown", "session.refused", "users", details=told)
            return None
        await self._write(user, "session.begin")
        return user

    async def leave(self, actor: str, tenant_id: str | None) -> None:
        """Put on record that somebody logged out."""
        await self._journal.write(actor, "session.end", actor, tenant_id=tenant_id or "")

    async def _write(self, user: User, action: str) -> None:
        actor = f"user:{user.name}"
        await self._journal.write(actor, action, actor, tenant_id=user.tenant_id or "")


def neighbourhood(address: str) -> str:
    """Whose address it is: of IPv6, everybody has 64 bits of them."""
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, IPv6Address) and found.ipv4_mapped is None:
        return str(ip_network((found, 64), strict=False))
    return str(getattr(found, "ipv4_mapped", None) or found)
