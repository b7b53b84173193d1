"""The scripts of `lua/`, put together with what they need and with their state guards filled in.

`{from cancel}` in a script becomes a table of the states that the transition table lets that
action start from, so the guards cannot drift from `model/states.py`. `{failure expired}` becomes
what is told of a job that ends without anybody running it.

In a file, `-- needs: common edges` names the parts that stand before it, and `-- later: gates
gives open_gates` a part that `later_gates()` makes and gives only when it is called.
"""

import re
from collections.abc import Iterator
from functools import cache
from hashlib import sha1
from importlib.resources import files

from msgspec import Struct

from penstock.model.dependency import Edge, Outcome
from penstock.model.failure import EXPIRED, LEASE_LOST
from penstock.model.orphan import orphaned
from penstock.model.states import Status, sources
from penstock.store.redis.failures import spelled

_NEEDS = re.compile(r"^-- needs: ([\w ]+)$", re.MULTILINE)
_LATER = re.compile(r"^-- later: (\w+) gives ([\w, ]+)$", re.MULTILINE)
_GUARD = re.compile(r"\{from (\w+)\}")
_FAILURE = re.compile(r"\{failure (\w+)\}")
_ANY_PARENT = Edge(parent_id="0" * 26)
_FAILURES = {
    "expired": EXPIRED,
    "lost": LEASE_LOST,
    "after_cancelled": orphaned(_ANY_PARENT, Outcome.CANCELLED, Status.CANCELLED),
    "after_dead_letter": orphaned(_ANY_PARENT, Outcome.CANCELLED, Status.DEAD_LETTER),
    "after_foreign": orphaned(_ANY_PARENT, Outcome.CANCELLED, Status.CANCELLED, foreign=True),
}


class Script(Struct, frozen=True):
    """One script as the server runs it, and the name it remembers it by."""

    name: str
    source: str
    sha: str


@cache
def script(name: str) -> Script:
    """A script by the name of its file."""
    *needs, last = _needs(name)
    parts = [*map(_text, needs), *_later(name, needs), _text(last)]
    source = _GUARD.sub(lambda match: _states(match[1]), "\n".join(parts))
    source = _FAILURE.sub(lambda match: _failure(match[1]), source)
    return Script(name, source, sha1(source.encode(), usedforsecurity=False).hexdigest())


def _needs(name: str) -> list[str]:
    """The script and all that it needs, each once and after what it needs itself."""
    found: list[str] = []
    needs = _NEEDS.search(_text(name))
    for part in needs[1].split() if needs else ():
        found += [further for further in _needs(part) if further not in found]
    return [*found, name]


def _later(name: str, needs: list[str]) -> Iterator[str]:
    """What a script rarely needs, each as a function that makes it when it is called.

    Making a hundred functions costs more than a small call does otherwise.
    """
    for part, given in _LATER.findall(_text(name)):
        *further, last = [each for each in _needs(part) if each not in needs]
        texts = [*map(_text, further), *_later(part, [*needs, *further]), _text(last)]
        body = "\n".join(texts)
        yield f"local function later_{part}()\n{body}\nreturn {given}\nend"


@cache
def _text(name: str) -> str:
    return files("penstock.store.redis").joinpath("lua", f"{name}.lua").read_text("utf-8")


def _states(action: str) -> str:
    return "{" + ", ".join(f"{status} = true" for status in sources(action)) + "}"


def _failure(name: str) -> str:
    return _table(spelled(_FAILURES[name]))


def _table(texts: dict[str, str]) -> str:
    return "{" + ", ".join(f"{name} = [==[{text}]==]" for name, text in texts.items()) + "}"
