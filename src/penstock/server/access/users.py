"""Users for people: a name and a password, of which only a slow hash is kept."""

import asyncio
import re

from msgspec import Struct
from msgspec.json import decode, encode
from msgspec.structs import replace

from penstock.model.errors import InvalidOption
from penstock.server.access.scopes import Scope
from penstock.server.access.secrets import hash_of_password, password_fits
from penstock.store.contract import Store

KIND = "user"
SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 1_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@+-]{0,63}")
_NOBODY = hash_of_password("nobody")


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
        if not _NAME.fullmatch(name):
            raise InvalidOption("user", name, "letters, digits and _.@+-, 64 at most")
        user = User(
            name=name,
            scopes=scopes,
            tenant_id=tenant_id,
            password=hash_of_password(checked_password(password)),
            created_by=by,
            created_at=self._store.clock.now(),
        )
        if await self._store.records.put(KIND, name, encode(user).decode(), revision=0) is None:
            raise InvalidOption("user", name, "a name that nobody has yet")
        return user

    async def all(self) -> list[User]:
        """Every user, by name."""
        found = await self._store.records.list(KIND)
        return [decode(record.document, type=User) for record in found]

    async def get(self, name: str) -> User | None:
        """One user, or none."""
        record = await self._store.records.get(KIND, name)
        return None if record is None else decode(record.document, type=User)

    async def set_password(self, name: str, password: str) -> User:
        """Give a user another password."""
        user = await self._known(name)
        changed = replace(user, password=hash_of_password(checked_password(password)))
        await self._store.records.put(KIND, name, encode(changed).decode())
        return changed

    async def remove(self, name: str) -> User:
        """Delete a user; its sessions end with it."""
        user = await self._known(name)
        await self._store.records.remove(KIND, name)
        return user

    async def check(self, name: str, password: str) -> User | None:
        """The user, if the password is right; an unknown name takes as long to refuse."""
        user = await self.get(name) if _NAME.fullmatch(name) else None
        kept = user.password if user else _NOBODY
        # In a thread, as it is slow on purpose, and others are waiting.
        right = await asyncio.to_thread(password_fits, password[:LONGEST_PASSWORD], kept)
        return user if right and user is not None else None

    async def _known(self, name: str) -> User:
        user = await self.get(name)
        if user is None:
            raise InvalidOption("user", name, "the name of a user; `penstock users ls` lists them")
        return user


def checked_password(password: str) -> str:
    """Refuse a password that is too short to be one."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise InvalidOption(
            "password",
            "***",
            f"between {SHORTEST_PASSWORD} and {LONGEST_PASSWORD:,} characters long",
        )
    return password
