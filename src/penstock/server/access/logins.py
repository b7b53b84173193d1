"""Logging in: not too often, and with the same words for a wrong name and a wrong password.

Whoever guesses is refused by their address, so that they keep out nobody but themselves. A name
that is guessed from many addresses takes longer to answer for, but its owner still comes in.
"""

import asyncio
from asyncio import sleep
from ipaddress import IPv6Address, ip_address, ip_network

from penstock.client.journal import Journal
from penstock.server.access.rates import Rates
from penstock.server.access.users import User, Users
from penstock.server.problems import Refusal

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
