"""The scripts of `lua/`, put together with their state guards, and calling them."""

import re
from collections.abc import Coroutine, Iterator
from functools import cache
from hashlib import sha1
from importlib.resources import files
from typing import Any, TypeVar

from msgspec import Struct
from redis.exceptions import NoScriptError

from penstock.model.clock import Clock, SystemClock
from penstock.model.dependency import Edge, Outcome
from penstock.model.failure import EXPIRED, LEASE_LOST, orphaned
from penstock.model.states import Status, sources
from penstock.store.redis.errors import translate
from penstock.store.redis.keys import spelled
from penstock.store.redis.server import Server

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
    """A file of `lua/scripts`, which are called, or of `lua/parts`, which those include."""
    folder = files("penstock.store.redis").joinpath("lua")
    called = folder.joinpath("scripts", f"{name}.lua")
    found = called if called.is_file() else folder.joinpath("parts", f"{name}.lua")
    return found.read_text("utf-8")


def _states(action: str) -> str:
    return "{" + ", ".join(f"{status} = true" for status in sources(action)) + "}"


def _failure(name: str) -> str:
    return _table(spelled(_FAILURES[name]))


def _table(texts: dict[str, str]) -> str:
    return "{" + ", ".join(f"{name} = [==[{text}]==]" for name, text in texts.items()) + "}"


T = TypeVar("T")
Command = tuple[Any, ...]


class Scripts:
    """Calls scripts, from event loops or from any thread.

    Calls of one turn of an event loop share a round trip, but for the first. A store with a clock
    of its own, for tests, passes its times along; otherwise the server's clock decides.
    """

    def __init__(
        self, server: Server, clock: Clock | None = None, prefix: str | None = None
    ) -> None:
        self.server = server
        self._prefix = prefix
        self.clock: Clock = clock or SystemClock()
        self.given_clock = clock
        self._told = clock is not None

    @property
    def prefix(self) -> str:
        """What every key begins with."""
        return self._prefix or self.server.prefix

    def times(self) -> tuple[int | str, int | str]:
        """Now and the clock of leases as scripts take them."""
        return (self.clock.now(), self.clock.monotonic()) if self._told else ("", "")

    async def call(self, name: str, *arguments: Any, decisions: str = "") -> Any:
        """The answer of a script."""
        called = script(name)
        answer = await self.server.reply(self._command(called, decisions, arguments))
        if isinstance(answer, NoScriptError):
            answer = await self.server.reply(self._source(called, decisions, arguments))
        return self._checked(answer)

    async def call_whole(self, name: str, *arguments: Any) -> Any:
        """The same with the script's text sent along: it runs before whatever is sent after it.

        A server that does not know a script by its hash would have it sent again, behind the rest.
        """
        return self._checked(await self.server.reply(self._source(script(name), "", arguments)))

    def call_now(self, name: str, *arguments: Any, decisions: str = "") -> Any:
        """The answer of a script, for a thread that has no event loop."""
        called = script(name)
        answer = self.server.reply_now(self._command(called, decisions, arguments))
        if isinstance(answer, NoScriptError):
            answer = self.server.reply_now(self._source(called, decisions, arguments))
        return self._checked(answer)

    def ask_now(self, *command: Any) -> Any:
        """The answer to a plain command, for a thread that has no event loop."""
        return self._checked(self.server.reply_now(command))

    async def ask(self, *commands: Command) -> list[Any]:
        """The answers to plain commands, in one round trip."""
        return [self._checked(answer) for answer in await self.server.replies(commands)]

    def _checked(self, answer: Any) -> Any:
        if isinstance(answer, Exception):
            raise translate(self.server.url, answer) from answer
        return answer

    async def look(self, *commands: Command) -> tuple[int, list[Any]]:
        """The store's time, and the answers to plain commands."""
        if self._told:
            return self.clock.now(), await self.ask(*commands)
        [seconds, micros], *answers = await self.ask(("TIME",), *commands)
        return int(seconds) * 1000 + int(micros) // 1000, answers

    def _command(self, called: Script, decisions: str, arguments: tuple[Any, ...]) -> Command:
        return "EVALSHA", called.sha, 1, self.prefix, *self.times(), decisions, *arguments

    def _source(self, called: Script, decisions: str, arguments: tuple[Any, ...]) -> Command:
        return "EVAL", called.source, 1, self.prefix, *self.times(), decisions, *arguments


class ThreadScripts(Scripts):
    """The same for a thread without an event loop: a call of a script returns with its answer.

    So a coroutine that calls scripts and awaits nothing else is over at its first step.
    """

    async def call(self, name: str, *arguments: Any, decisions: str = "") -> Any:
        """The answer of a script."""
        return self.call_now(name, *arguments, decisions=decisions)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """What such a coroutine returns."""
        try:
            work.send(None)
        except StopIteration as end:
            result: T = end.value
            return result
        work.close()
        raise RuntimeError("a coroutine for a thread waited for an event loop")
