"""What a hook uses of the standard library in the place of what takes it longer to load."""

from collections import namedtuple

try:
    from _blake2 import blake2b
except ImportError:  # another Python than CPython
    from hashlib import blake2b

__all__ = ["NamedTuple", "blake2b"]

TYPE_CHECKING = False

if TYPE_CHECKING:
    from typing import NamedTuple
else:

    class _Making(type):
        """Makes a named tuple of a class that says its fields as for `typing.NamedTuple`."""

        def __new__(cls, name, bases, said):
            if not bases:
                return super().__new__(cls, name, bases, said)
            fields = said.pop("__annotations__")
            defaults = [said.pop(field) for field in fields if field in said]
            made = namedtuple(name, fields, defaults=defaults, module=said["__module__"])
            for what in ("__doc__", "__qualname__"):
                setattr(made, what, said.get(what))
            return made

    class NamedTuple(metaclass=_Making):
        """Stands for that of `typing`, whose import costs more than all of ours together."""
