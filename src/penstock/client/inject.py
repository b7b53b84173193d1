"""Resources a worker opens once and hands to every job that asks for them."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, TypeVar, cast

T = TypeVar("T")
Provider = Callable[
    [],
    "AsyncIterator[T] | Iterator[T] | AbstractAsyncContextManager[T] | AbstractContextManager[T]",
]


class Injected:
    """Stands in a signature for a resource until a worker fills it in."""

    __slots__ = ("provider",)

    def __init__(self, provider: Callable[[], Any]) -> None:
        self.provider = provider

    def __repr__(self) -> str:
        return f"inject({self.provider.__qualname__})"


def inject(provider: "Provider[T]") -> T:
    """A default value that asks for a resource: `def report(day: str, db: Db = inject(open_db))`.

    The provider yields the resource once, or returns a (possibly async) context manager. It is
    entered when a worker first needs it and left when that worker stops.
    """
    return cast(T, Injected(provider))
