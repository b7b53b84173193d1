"""Where the store refuses to work, because it could not keep its promises there."""

from penstock.model.errors import AccessDenied, ServerTooOld, StoreError, StoreReadOnly
from penstock.store.postgres.connect import Address, Connection, answer, quoted
from penstock.store.postgres.errors import NAME_PRIMARY

OLDEST = 15


def check_server(connection: Connection, address: Address) -> None:
    """Refuse a server that is too old, that can only be read, or that cannot hold every text."""
    if answer(connection, "server_number") < OLDEST * 10_000:
        found = str(answer(connection, "server_version")).partition(" ")[0]
        raise ServerTooOld(address.name, found, str(OLDEST))
    if answer(connection, "is_standby"):
        raise StoreReadOnly(address.name, NAME_PRIMARY)
    encoding = answer(connection, "encoding")
    if encoding != "UTF8":
        problem = f"has the encoding {encoding}, which cannot hold every text; use a UTF8 database"
        raise StoreError(address.name, problem)


def check_account(connection: Connection, address: Address) -> None:
    """Refuse a URL that names a tenant where this user may not work for one."""
    if address.tenant is None or answer(connection, "is_member", role=address.tenant_role):
        return
    user, role = str(answer(connection, "user")), quoted(address.tenant_role)
    known = answer(connection, "known_roles", roles=[address.tenant_role])
    first = "" if known else f"make the role with `penstock migrate` (or CREATE ROLE {role}), then "
    advice = f"{first}GRANT {role} TO {quoted(user)}"
    raise AccessDenied(address.name, f"user {user!r} may not work for a tenant", advice)
