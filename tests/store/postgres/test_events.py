"""Events on PostgreSQL for who owns no table: the worker of an installation."""

from penstock import Penstock, Settings
from penstock.events.archive import make_months
from penstock.events.event import NewEvent, Session
from penstock.store.postgres.connect import address_of
from tests.store.postgres.conftest import Connection, Logins


async def test_a_worker_makes_months_appends_and_erases_but_writes_no_table_anew(
    logins: Logins, admin: Connection
) -> None:
    owner = logins.owner()
    address = address_of(owner)
    for role in (address.worker_role, address.tenant_role):
        admin.execute(f"CREATE ROLE {role}".encode())
    async with Penstock(settings=Settings(url=owner)) as app:
        await app.events.append(NewEvent(event_type="tool_use", session_id="s1"))
    worker = logins.make("", f"GRANT {address.worker_role} TO {{}}")
    for function in ("events_make_month(integer)", "events_drop_month(bigint)"):
        asked = (f"{address.schema}.{function}", address.worker_role, address.tenant_role)
        sql = """
            SELECT has_function_privilege('public', f, 'EXECUTE'),
                has_function_privilege(w, f, 'EXECUTE'), has_function_privilege(t, f, 'EXECUTE')
            FROM (VALUES (%s, %s, %s)) AS asked (f, w, t)
        """
        assert admin.execute(sql, asked).fetchone() == (False, True, False)
    async with Penstock(settings=Settings(url=worker)) as app:
        assert await make_months(app) == 4
        await app.events.append(NewEvent(event_type="tool_use", session_id="s1"))
        assert (await app.events.find())[1].sequence == 2
        erased = await app.events.erase(Session("", "", "s1"))
        assert erased.parts == {"events": 2}
        assert erased.remarks == [
            f"VACUUM (FULL) the tables of schema {address.schema} as their owner"
        ]
