"""Turning what a library raises into penstock's own errors."""

from collections.abc import Callable
from types import TracebackType
from typing import Generic, TypeVar

from penstock.model.errors import InvalidOption, PenstockError

CORRECT_URL = "correct the user name and the password in the URL"

E = TypeVar("E", bound=Exception)


class Translated(Generic[E]):
    """A `with` block in which errors of some kinds become penstock's own.

    `translate` gets the store's name and the error; where it answers none, the error passes.
    """

    # A class and not a generator, because it surrounds every call of a store.
    __slots__ = ("_kinds", "_name", "_translate")

    def __init__(
        self,
        name: str,
        kinds: tuple[type[E], ...],
        translate: Callable[[str, E], PenstockError | None],
    ) -> None:
        self._name = name
        self._kinds = kinds
        self._translate = translate

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, self._kinds):
            told = self._translate(self._name, error)
            if told is not None:
                raise told from error


def not_unicode(error: UnicodeEncodeError) -> InvalidOption:
    """What to say about a text that no store can hold."""
    return InvalidOption("text", error.object, "valid Unicode, without half a surrogate pair")
