"""What a caller may do. A scope includes the ones it could not do without."""

from collections.abc import Iterable
from enum import StrEnum

from penstock.model.errors import InvalidOption


class Scope(StrEnum):
    """One kind of permission."""

    ENQUEUE = "enqueue"
    READ = "read"
    OPERATE = "operate"
    ADMIN = "admin"


_INCLUDED = {
    Scope.ENQUEUE: frozenset({Scope.ENQUEUE}),
    Scope.READ: frozenset({Scope.READ}),
    Scope.OPERATE: frozenset({Scope.OPERATE, Scope.READ}),
    Scope.ADMIN: frozenset(Scope),
}


def including(scopes: Iterable[Scope]) -> frozenset[Scope]:
    """These scopes with all they include."""
    return frozenset().union(*(_INCLUDED[scope] for scope in scopes))


def parse_scopes(names: Iterable[str]) -> tuple[Scope, ...]:
    """Scopes by their names, each once, in the order of the enumeration."""
    given = list(names)
    for name in given:
        if name not in set(Scope):
            raise InvalidOption("scope", name, f"one of: {', '.join(Scope)}")
    if not given:
        raise InvalidOption("scope", "nothing", f"at least one of: {', '.join(Scope)}")
    return tuple(scope for scope in Scope if scope in given)
