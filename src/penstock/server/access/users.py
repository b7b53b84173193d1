"""Users for people: a name and a password, of which only a slow hash is kept."""

import asyncio
import re
from functools import cache
from typing import Any

from msgspec import Struct
from msgspec.json import decode, encode
from msgspec.structs import replace

from penstock.client.documents import document
from penstock.model.errors import InvalidOption
from penstock.model.refused import UserNotFound
from penstock.server.access.scopes import Scope
from penstock.server.access.secrets import hash_of_password, password_fits
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
