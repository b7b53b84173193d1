"""A `with` block in which a library's errors become penstock's own."""

import pytest

from penstock.model.errors import InvalidOption
from penstock.model.store_errors import StoreError
from penstock.store.contract.errors import Translated, not_unicode


def told(name: str, error: LookupError) -> StoreError | None:
    return StoreError(name, "lost it") if isinstance(error, KeyError) else None


def test_an_error_of_these_kinds_is_said_in_other_words() -> None:
    translated = Translated("here", (LookupError,), told)
    with pytest.raises(StoreError, match=r"^Store here lost it\.$") as raised, translated:
        raise KeyError("a")
    assert isinstance(raised.value.__cause__, KeyError)


def test_an_error_without_a_translation_passes() -> None:
    with pytest.raises(IndexError), Translated("here", (LookupError,), told):
        raise IndexError


def test_an_error_of_another_kind_passes() -> None:
    with pytest.raises(ValueError, match="b"), Translated("here", (LookupError,), told):
        raise ValueError("b")


def test_half_a_surrogate_pair_is_refused_as_what_it_is() -> None:
    with pytest.raises(UnicodeEncodeError) as raised:
        "\ud800".encode()
    assert isinstance(not_unicode(raised.value), InvalidOption)
    assert "half a surrogate pair" in str(not_unicode(raised.value))
