"""Circuit breakers as code declares them: which types depend on what."""

from typing import TYPE_CHECKING, Any

from penstock.client.options import check_name, check_seconds
from penstock.model.controls import DEFAULT_COOL_DOWN_MS, DEFAULT_FAILURES, Breaker
from penstock.model.errors import InvalidOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.client.app import Penstock

MAX_FAILURES = 1_000_000


class DeclaredBreakers:
    """All breakers of an application; a job type may name one before it is described."""

    def __init__(self) -> None:
        self._described: dict[str, tuple[int, int]] = {}
        self._guarded: dict[str, str] = {}

    def describe(self, name: str, failures: Any, cool_down: Any) -> None:
        """Say after how many failures a breaker opens, and for how many seconds."""
        check_name("breaker", name)
        whole = isinstance(failures, int) and not isinstance(failures, bool)
        if not whole or not 0 < failures <= MAX_FAILURES:
            raise InvalidOption("failures", failures, "a whole number, 1 or more")
        check_seconds("cool_down", cool_down)
        chosen = (failures, max(1, int(cool_down * 1000)))
        if self._described.setdefault(name, chosen) != chosen:
            raise InvalidOption("breaker", name, "described once")

    def guard(self, name: str, types: "Sequence[str]") -> None:
        """Have a breaker hold back jobs of these types."""
        check_name("breaker", name)
        self._guarded.update(dict.fromkeys(types, name))

    async def declare(self, app: "Penstock") -> None:
        """Put them into the store; for the types of this application its word is the last."""
        names = {*self._described, *self._guarded.values()}
        controls = app.store.controls
        if names or await controls.breakers():
            wanted = [self._breaker(name) for name in sorted(names)]
            await controls.define_breakers(wanted, known_types=sorted(app.types))

    def _breaker(self, name: str) -> Breaker:
        failures, cool_down_ms = self._described.get(name, (DEFAULT_FAILURES, DEFAULT_COOL_DOWN_MS))
        types = tuple(type_ for type_, guard in self._guarded.items() if guard == name)
        return Breaker(name=name, types=types, failures=failures, cool_down_ms=cool_down_ms)
