"""Turning what a library raises into penstock's own errors."""

from collections.abc import Callable
from types import TracebackType

from penstock.model.errors import InvalidOption, PenstockError

Translate = Callable[[str, Exception], PenstockError | None]
"""The error to raise about the store of this name, or none to let the other pass."""


class Translated:
    """A `with` block in which some kinds of errors become penstock's own."""

    # A class and not a generator, because it surrounds every call of a store.
    __slots__ = ("_kinds", "_name", "_translate")

    def __init__(self, name: str, kinds: tuple[type[Exception], ...], translate: Translate) -> None:
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


def no_unicode(error: UnicodeEncodeError) -> InvalidOption:
    """What to say about a text that no store can hold."""
    return InvalidOption("text", error.object, "valid Unicode, without half a surrogate pair")
