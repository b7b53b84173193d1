"""An application whose server, worker and remote caller each have a copy of their own."""

from msgspec import Struct

from penstock import Context, Dead, Penstock, Settings


class Dish(Struct):
    name: str
    minutes: int


def make_app(address: str, **settings: object) -> Penstock:
    """The same types, whoever asks."""
    url, _, dispatch = address.partition(" + ")
    chosen = Settings().replace(requests_per_minute=0, **settings)
    app = Penstock(url, dispatch=dispatch or None, settings=chosen)

    @app.job
    async def add(a: int, b: int = 1) -> int:
        return a + b

    @app.job(queue="stove", tags=("hot",), breaker="oven")
    async def cook(name: str, minutes: int) -> Dish:
        return Dish(name, minutes)

    @app.job
    async def total(parts: list[int]) -> int:
        return sum(parts)

    @app.job(max_retries=0)
    async def burn(text: str = "burnt") -> None:
        raise Dead(text)

    @app.job
    async def stir(ctx: Context, times: int) -> int:
        ctx.progress({"phase": "half done", "percent": 50, "spoon": "wooden"})
        ctx.log("stirred")
        return times

    return app
