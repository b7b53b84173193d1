"""Handlers for tests of flows, which say what they did."""

from typing import Any

import pytest

from penstock import Cancel, Penstock


class Kitchen:
    """Handlers that say what they did."""

    def __init__(self, app: Penstock) -> None:
        self.did: list[Any] = []

        @app.job
        async def peel(n: int) -> int:
            self.did.append(("peel", n))
            return n

        @app.job
        async def cook(dish: int, salt: int = 1) -> int:
            self.did.append(("cook", dish))
            return dish * 10 + salt

        @app.job
        async def serve(plates: list[int]) -> list[int]:
            self.did.append(("serve", plates))
            return plates

        @app.job
        async def mix(first: int, second: int) -> int:
            self.did.append(("mix", first, second))
            return first + second

        @app.job
        async def clean() -> str:
            self.did.append("clean")
            return "clean"

        @app.job(max_retries=0)
        async def burn(dish: int) -> int:
            raise ValueError(f"burnt {dish}")

        @app.job
        async def refuse(dish: int) -> int:
            raise Cancel(f"no {dish}")

        self.peel, self.cook, self.serve, self.mix = peel, cook, serve, mix
        self.clean, self.burn, self.refuse = clean, burn, refuse


@pytest.fixture
def kitchen(app: Penstock) -> Kitchen:
    return Kitchen(app)
