"""One error of each kind, made from what its class takes."""

import inspect
from collections.abc import Iterable, Mapping
from typing import Any, get_origin, get_type_hints

from penstock.model.errors import PenstockError
from penstock.model.not_found import NotFound


def sample_error(kind: type[PenstockError]) -> PenstockError:
    """An error whose fields all have a value."""
    if kind in (PenstockError, NotFound):
        return kind("Something is wrong.")
    hints = get_type_hints(kind.__init__)
    return kind(**{name: _value(name, hints[name]) for name in inspect.signature(kind).parameters})


def _value(name: str, hint: Any) -> Any:
    origin = get_origin(hint)
    if origin is not None and inspect.isclass(origin) and issubclass(origin, Mapping):
        return {}
    if origin is not None and inspect.isclass(origin) and issubclass(origin, Iterable):
        return ("one", "two")
    if hint in (int, float):
        return hint(7)
    return None if "Mapping" in str(hint) else f"a {name}"
