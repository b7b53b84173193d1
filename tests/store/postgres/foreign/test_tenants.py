"""A store for one tenant stays with that tenant on every connection it is given or gives."""

from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg.pq import TransactionStatus

from penstock.model.job import NewJob
from penstock.model.store_errors import AccessDenied
from penstock.store.contract import JobFilter, Store
from penstock.store.open import open_store
from penstock.store.postgres.connect import Address
from tests.store.postgres.conftest import Logins
from tests.support.guests import GUESTS

OURS = NewJob(id="ours", type="mail", tenant_id="acme", key="welcome", order_key="line")
THEIRS = NewJob(id="theirs", type="mail", tenant_id="globex")


@pytest.fixture
async def everybody(address: Address) -> AsyncIterator[Store]:
    store = open_store(address.url)
    await store.open()
    await store.jobs.enqueue([THEIRS])
    yield store
    await store.close()


@pytest.fixture
async def acme(everybody: Store) -> AsyncIterator[Store]:
    store = open_store(f"{everybody.url}&tenant=acme")
    await store.open()
    yield store
    await store.close()


def _plain(address: Address) -> str:
    """What other libraries take: without penstock's own options."""
    return address.url.partition("?")[0]


async def _ids(store: Store) -> set[str]:
    return {job.id for job in await store.reader.find(JobFilter())}


@pytest.mark.parametrize("kind", ["psycopg", "psycopg-async", "asyncpg", "Session"])
async def test_a_joined_transaction_writes_for_the_tenant_alone_and_is_itself_again(
    everybody: Store, acme: Store, address: Address, kind: str
) -> None:
    settings = "SELECT current_user || current_setting('role') || current_setting('search_path')"
    async with GUESTS[kind](_plain(address)) as guest:
        before = await guest.execute(settings)
        await acme.jobs.enqueue([OURS], connection=guest.connection)
        gift = NewJob(id="gift", type="mail", tenant_id="globex")
        with pytest.raises(AccessDenied, match="not its tenant's"):
            await acme.jobs.enqueue([gift], connection=guest.connection)
        assert await guest.execute(settings) == before
        assert await guest.execute(f"SELECT count(*) FROM {address.schema}.jobs") == 2
        await guest.commit()
    assert await _ids(everybody) == {"ours", "theirs"}


async def test_a_login_that_may_not_work_for_a_tenant_is_told_so(
    acme: Store, address: Address, logins: Logins
) -> None:
    with psycopg.connect(logins.make().partition("?")[0]) as connection:
        with pytest.raises(AccessDenied, match="permission denied to set role"):
            await acme.jobs.enqueue([OURS], connection=connection)
        assert connection.execute("SELECT 1").fetchone() == (1,)


async def test_a_worker_may_enqueue_in_its_own_transaction(
    everybody: Store, address: Address, logins: Logins
) -> None:
    url = logins.make("", f"GRANT {address.worker_role} TO {{}}").partition("?")[0]
    with psycopg.connect(url) as connection:
        await everybody.jobs.enqueue([OURS], connection=connection)
    assert await _ids(everybody) == {"ours", "theirs"}


async def test_a_login_without_rights_is_told_which_role_it_needs(
    everybody: Store, logins: Logins
) -> None:
    with psycopg.connect(logins.make().partition("?")[0]) as connection:
        with pytest.raises(AccessDenied, match="grant it one of the roles"):
            await everybody.jobs.enqueue([OURS], connection=connection)
        assert connection.execute("SELECT 1").fetchone() == (1,)


async def test_a_lent_connection_is_an_ordinary_one_of_psycopg(
    everybody: Store, address: Address
) -> None:
    lent = everybody.connection()
    assert isinstance(lent, psycopg.Connection)
    with lent:
        assert not lent.autocommit
        assert lent.info.transaction_status == TransactionStatus.IDLE
        assert lent.execute("SHOW search_path").fetchone() == ('"$user", public',)
        await everybody.jobs.enqueue([OURS], connection=lent)
    assert await _ids(everybody) == {"ours", "theirs"}


async def test_a_lent_connection_of_a_tenant_shows_it_no_rows_of_others(
    acme: Store, address: Address
) -> None:
    lent = acme.connection()
    assert isinstance(lent, psycopg.Connection)
    with lent:
        count = f"SELECT count(*) FROM {address.schema}.jobs".encode()
        assert lent.execute(count).fetchone() == (0,)
        await acme.jobs.enqueue([OURS], connection=lent)
        assert lent.execute(count).fetchone() == (1,)
        lent.rollback()
        assert lent.execute(count).fetchone() == (0,)
        assert lent.execute(f"UPDATE {address.schema}.jobs SET priority = 1".encode()).rowcount == 0
