"""The gate before the log: it takes out of an event what must not be kept.

A gate is a function from an event to an event, named in the settings. What has passed it must come
through it unchanged: an event that waits in a stream or a spool passes it on its way there, and
again on its way into the log. This is the engine's own: secrets and e-mail addresses are replaced
in every text. Most events hold none, and one look at all of their texts together, in linear time,
tells so.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from msgspec import to_builtins
from msgspec.structs import replace

from penstock.events.event import InvalidEvent, NewEvent
from penstock.model.redact import RULES, redact_whole, rules_added

Gate = Callable[[NewEvent], NewEvent]
"""Takes out of an event what must not be kept; of what it has cleaned it changes nothing more."""

TOGETHER = 20
"""So many events are searched at once: a search lets other threads run, and comes back late."""

KNOWN_BY = ("event_id", "event_type", "session_id", "platform", "hook_type")


def redacting(event: NewEvent) -> NewEvent:
    """Replace secrets and e-mail addresses; refuse an event that is known by one."""
    try:
        if not rules_added() and not may_match("\n".join(_texts(event))):
            return event
    except UnicodeEncodeError as error:
        raise InvalidEvent(
            event.event_id, "holds half a surrogate pair, which is no text"
        ) from error
    except RecursionError as error:
        raise InvalidEvent(event.event_id, "is nested too deeply") from error
    except TypeError as error:
        raise InvalidEvent(event.event_id, f"does not fit ({error})") from error
    for name in KNOWN_BY:
        text = getattr(event, name)
        if text and redact_whole(text) != text:
            problem = f"has a secret or an address in its {name}"
            raise InvalidEvent("" if name == "event_id" else event.event_id, problem)
    return replace(event, payload=_redacted(event.payload), metadata=_redacted(event.metadata))


def pass_unchanged(events: Sequence[NewEvent]) -> list[bool]:
    """Tell for each event whether it is known that `redacting` finds nothing in it.

    Several are looked at together; those that may hold something have to be looked at one by one.
    """
    if rules_added():
        return [False] * len(events)
    known: list[bool] = []
    for first in range(0, len(events), TOGETHER):
        some = events[first : first + TOGETHER]
        try:
            found = may_match("\n".join([text for event in some for text in _texts(event)]))
        except (UnicodeEncodeError, RecursionError, TypeError):
            found = True
        known += [not found] * len(some)
    return known


def _texts(event: NewEvent) -> list[str]:
    """All texts of an event, those of named values as a secret would be written."""
    texts = [event.event_id, event.event_type, event.session_id, event.platform]
    if event.hook_type:
        texts.append(event.hook_type)
    _gather(event.payload, texts)
    _gather(event.metadata, texts)
    return texts


def _gather(value: Any, texts: list[str]) -> None:
    if isinstance(value, str):
        texts.append(value)
    elif isinstance(value, dict):
        for name, each in value.items():
            if isinstance(each, str):
                texts.append(f'{name}="{each}"')
            else:
                texts.append(str(name))
                if not isinstance(each, _TEXTLESS):
                    _gather(each, texts)
    elif isinstance(value, list | tuple):
        for each in value:
            _gather(each, texts)
    elif not isinstance(value, _TEXTLESS):
        _gather(to_builtins(value), texts)


def _redacted(value: Any) -> Any:
    if isinstance(value, dict):
        named = ((redact_whole(str(name)), each) for name, each in value.items())
        return {name: _named(name, each) for name, each in named}
    if isinstance(value, list | tuple):
        return [_redacted(each) for each in value]
    if isinstance(value, str):
        return redact_whole(value)
    return value if isinstance(value, _TEXTLESS) else _redacted(to_builtins(value))


_TEXTLESS = (int, float, type(None))
"""All else that can be written as JSON, a set or a Struct, is first made what that would hold."""


def _named(name: str, value: Any) -> Any:
    """A value of which its name may say that it is a secret: `{"password": "…"}`."""
    if isinstance(value, str):
        before = f'{name}="'
        written = redact_whole(f'{before}{value}"')
        if written.startswith(f"{before}[REDACTED_") and written.endswith(']"'):
            return written.removeprefix(before).removesuffix('"')
    return _redacted(value)


def may_match(text: str) -> bool:
    """Whether a rule might find something; it is never wrong when it says no."""
    search = _any_rule()
    if search is not None:
        return bool(search.Match(text))
    lowered = text.lower()
    return any(needle in lowered for rule in RULES for needle in rule.needles)


@cache
def _any_rule() -> Any:
    """All rules as one search that takes linear time; None without the library for it."""
    try:
        import re2  # type: ignore[import-untyped]
    except ImportError:
        return None
    options = re2.Options()
    options.max_mem = 256 << 20
    search = re2.Set.SearchSet(options)
    for rule in RULES:
        search.Add(loosened(rule.pattern))
    search.Compile()
    return search


_TOKEN = re.compile(
    r"""
    (?P<unlike>\(\?<?!|\(\?=\(\?P=)  # what RE2 cannot look at is left out
    |(?P<around>\(\?<?=)           # and what must stand around it is taken in
    |(?P<flags>\(\?[ix]+\))
    |(?P<class>\[\^?\]?(?:\\.|[^\]\\])*\])
    |(?P<repeat>\{(?P<least>\d*),?(?P<most>\d*)\}|[*+?])(?P<greedy>[+?]?)
    |(?P<escape>\\.)
    |(?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_BEYOND_ASCII = r"\x{80}-\x{10FFFF}"
_LONG = 100


def loosened(pattern: str) -> str:
    """A pattern that RE2 takes and that matches wherever this one does, and maybe elsewhere."""
    verbose, at, parts = False, 0, []
    while (found := _TOKEN.match(pattern, at)) is not None:
        at = found.end()
        if found["unlike"]:
            at = _after_group(pattern, at, found[0].count("("))
        elif found["around"]:
            parts.append("(?:")
        elif found["flags"]:
            verbose = "x" in found["flags"]
            parts.append("(?i)")
        elif found["class"]:
            parts.append(_wide(found["class"]))
        elif found["repeat"]:
            parts.append(_unbounded(found))
        elif found["escape"]:
            parts.append({r"\w": f"[{_W}]", r"\b": ""}.get(found[0], found[0]))
        elif not (verbose and found[0].isspace()):
            parts.append(found[0])
    return "".join(parts)


_W = rf"\w{_BEYOND_ASCII}"


def _wide(written: str) -> str:
    """A class of characters; to RE2, letters are those of ASCII."""
    if written.startswith("[^"):
        return rf"[A-Za-z{_BEYOND_ASCII}]" if r"\W" in written else written
    return written.replace(r"\w", _W)


def _unbounded(found: re.Match[str]) -> str:
    if not found["repeat"].startswith("{"):
        return found["repeat"]
    least, most = found["least"] or "0", found["most"]
    if most and int(most) > _LONG:
        return "*" if least == "0" else f"{{{least},}}"
    return found["repeat"]


def _after_group(pattern: str, at: int, depth: int) -> int:
    """Where so many groups end whose inside begins at a place."""
    while depth:
        found = _TOKEN.match(pattern, at)
        assert found is not None
        at = found.end()
        depth += found[0].startswith("(")
        depth -= found[0] == ")"
    return at
