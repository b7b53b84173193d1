"""Browser sessions: a cookie whose hash is kept, and a token that every form sends back."""

from msgspec import Struct
from msgspec.json import decode, encode

from penstock.server.access.identity import Identity
from penstock.server.access.secrets import hash_of_secret, random_secret
from penstock.server.access.users import User, Users
from penstock.store.contract import Store

KIND = "session"
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
            KIND, hash_of_secret(cookie), encode(session).decode(), expires_in_ms=LIFE_MS
        )
        return cookie

    async def end(self, cookie: str) -> None:
        """Forget a session."""
        await self._store.records.remove(KIND, hash_of_secret(cookie))

    async def identify(self, cookie: str) -> Identity | None:
        """Who a cookie stands for; none if it is unknown or over, or its user changed."""
        record = await self._store.records.get(KIND, hash_of_secret(cookie))
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
