"""What names a tenant or a person beside their jobs goes with them, on every store."""

from penstock import Penstock
from penstock.operate.erase import erase
from penstock.server.access.tokens import Tokens
from penstock.server.access.users import Sessions, Users
from penstock.store.contract.records import every
from penstock.testing import drain

READ = ("read",)


async def names(app: Penstock, kind: str) -> list[str]:
    return [record.document async for record in every(app.store.records, kind)]


async def test_tokens_users_limits_pauses_alerts_and_counters_go_with_a_tenant(
    app: Penstock,
) -> None:
    @app.job
    async def work() -> None: ...

    for tenant in ("acme", "acme-two"):
        await Tokens(app.store).create(tenant, READ, by="ann", tenant_id=tenant)  # type: ignore[arg-type]
        user = await Users(app.store).create(
            f"u-{tenant}",
            "long enough",
            READ,
            by="ann",
            tenant_id=tenant,  # type: ignore[arg-type]
        )
        await Sessions(app.store).begin(user)
        await app.store.records.put("alert", f"of-{tenant}", f'{{"text": "{tenant} is loud"}}')
        await work.options(tenant=tenant).enqueue()
        await drain(app)
        await app.controls.set_limit(tenant=tenant, concurrency=1, rate="5/s")
        await app.controls.pause(tenant=tenant)

    erased = await erase(app, tenant="acme")

    told = {"jobs": 1, "users": 1, "logins": 1, "tokens": 1, "limits": 2, "pauses": 1, "alerts": 1}
    assert erased.parts == told
    assert {each.limit.name for each in await app.controls.limits()} == {"acme-two"}
    assert [each.name for each in await app.controls.pauses()] == ["acme-two"]
    for kind in ("token", "user", "session", "alert"):
        assert len(await names(app, kind)) == 1
    window = [each.completed for each in await app.store.metrics.window(60_000, "acme")]
    assert sum(window) == 0
    others = await app.store.metrics.window(60_000, "acme-two")
    assert max(each.completed for each in others) == 1
    every_job = await app.store.metrics.window(60_000)
    assert max(each.completed for each in every_job) == 2, "what all jobs did is still counted"


async def test_a_person_s_user_goes_and_their_tenant_stays(app: Penstock) -> None:
    for name in ("ada", "bob"):
        user = await Users(app.store).create(
            name,
            "long enough",
            READ,
            by="ann",
            tenant_id="acme",  # type: ignore[arg-type]
        )
        await Sessions(app.store).begin(user)
    await Tokens(app.store).create("t", READ, by="ann", tenant_id="acme")  # type: ignore[arg-type]
    assert (await erase(app, tenant="beta", person="ada")).parts == {}
    assert (await erase(app, tenant="acme", person="ada")).parts == {"users": 1, "logins": 1}
    assert [each.name for each in await Users(app.store).all()] == ["bob"]
    assert len(await names(app, "token")) == 1
