"""A small application for the command line to work on."""

from penstock import Context, Dead, Penstock, Retry, Settings


def build(url: str) -> Penstock:
    app = Penstock(settings=Settings(url=url))

    @app.job(name="greet", queue="mail", priority=3)
    async def greet(ctx: Context, name: str, times: int = 1) -> str:
        ctx.log(f"greeting {name}")
        return ", ".join(["hello " + name] * times)

    @app.job(name="doomed")
    async def doomed(order: str) -> None:
        raise Dead(f"order {order} can never be done")

    @app.job(name="later", retry_delay=3600)
    async def later() -> None:
        raise Retry(reason="not yet")

    return app


app = build("sqlite:///shop.db")
empty = Penstock(settings=Settings(url="sqlite:///shop.db"))
