"""Which keys a script of the Redis store touches, read from its text and from what it includes."""

import re
import textwrap
from functools import cache

from penstock.store.redis.scripts import script

# fmt: off
READING = frozenset({
    "EXISTS", "GET", "HEXISTS", "HGET", "HGETALL", "HKEYS", "HLEN", "HMGET", "HSCAN", "HVALS",
    "LLEN", "LRANGE", "SCAN", "SMEMBERS", "SMISMEMBER", "SSCAN", "ZCARD", "ZCOUNT", "ZMSCORE",
    "ZRANGE", "ZRANGEBYLEX", "ZRANGEBYSCORE", "ZREVRANGE", "ZREVRANGEBYSCORE", "ZSCAN", "ZSCORE",
})
# fmt: on
_FUNCTION = re.compile(r"^local function (\w+)\(([^)]*)\)\n.*?^end$", re.MULTILINE | re.DOTALL)
_CALL = re.compile(r"\b(\w+)\(|[=,] (\w+)(?=[,}\n])")
_INDIRECT = re.compile(r"PREFIX \.\. [a-z(]")
_QUOTED = re.compile(r"'([a-z_]+(?::[a-z_]*)*)'")
_KEY = r"PREFIX \.\. '([^']+)'|\b(job|lane|schedule)_key\(|PREFIX \.\. (\w+)"
_NAMED = re.compile(_KEY)
_LOCAL = re.compile(rf"(?:\blocal )?\b(\w+) = (?:{_KEY})")
_COMMAND = re.compile(rf"\b(?:call|many)\('([A-Z]+)',\s*(?:{_KEY}|(\w+)\b)")
_HEADER = re.compile(r"local function \w+\(([^)]*)\)")
_NAME = re.compile(r"local function (\w+)")
_WORD = re.compile(r"\w+")
_CALLED = re.compile(r"call\('([A-Z]+)'")
_LAYOUT = re.compile(r"^--   ([a-z_:]+)", re.MULTILINE)
_ALSO = {"seq", "dead:seq", "workers:since", "workers:seen"}


def header_of(name: str) -> str:
    """Return the lines of a script's header that say which keys it touches."""
    reads, writes = keys_of(name)
    lines = []
    for verb, keys in (("reads", reads), ("writes", writes)):
        if keys:
            listed = ", ".join(sorted(map(_spelled, keys)))
            lines += textwrap.wrap(
                listed, 98, initial_indent=f"-- {verb}: ", subsequent_indent="--   "
            )
    return "".join(f"{line}\n" for line in lines)


def _spelled(key: str) -> str:
    if key in ("ARGV", "*"):
        return {"ARGV": "what ARGV names", "*": "every key"}[key]
    return f"{key}…" if key.endswith(":") else key


@cache
def layout() -> frozenset[str]:
    """The names of the layout, which end with a colon where more follows."""
    return frozenset(_LAYOUT.findall(script("common").source)) | _ALSO


@cache
def keys_of(name: str) -> tuple[frozenset[str], frozenset[str]]:
    """Return the keys that a script only reads, and those that it writes.

    A key whose name is handed on, so that no command is seen with it, counts as written if the
    script writes to such keys at all.
    """
    reads: set[str] = set()
    writes: set[str] = set()
    handed_on: set[str] = set()
    blind = False
    texts = _reached(_code(script(name).source))
    shared = _locals(texts[0])
    indirect = any(_INDIRECT.search(text) for text in texts)
    readers = [found[1] for text in texts if (found := _NAME.match(text)) and _only_reads(text)]
    for text in texts:
        for reader in readers:
            for called in re.findall(rf"\b{reader}\('([^']+)'", text):
                reads |= _family(called, None, None)
            text = re.sub(rf"\b{reader}\('([^']+)'", "", text)
        header = _HEADER.match(text)
        taken = {*_WORD.findall(header[1])} if header else set()
        local = {k: v for k, v in (shared | _locals(text)).items() if k not in taken}
        for found in _COMMAND.finditer(text):
            command, *key, variable = found.groups()
            families = _family(*key) if any(key) else local.get(variable, set())
            (reads if command in READING else writes).update(families)
            blind |= not families and command not in READING
        for line in text.splitlines():
            if {*_CALLED.findall(line)} & READING and not {*_CALLED.findall(line)} - READING:
                reads.update(*(_family(*found.groups()) for found in _NAMED.finditer(line)))
                text = text.replace(line, "")
        rest = _LOCAL.sub("", _COMMAND.sub("", text))
        handed_on |= {
            family
            for variable, families in local.items()
            if re.search(rf"\b{variable}\b", rest)
            for family in families
        }
        handed_on.update(*(_family(*found.groups()) for found in _NAMED.finditer(rest)))
        if indirect:
            handed_on |= {word for word in _QUOTED.findall(rest) if word in layout()}
        if "call(ARGV" in text:
            writes.add("ARGV")
    (writes if blind else reads).update(handed_on)
    return frozenset(reads - writes), frozenset(writes)


def _code(source: str) -> str:
    """The statements, with what is made later as if it were there from the beginning."""
    source = re.sub(r"^\s*--[^\n]*$|\s+-- [^\n]*", "", source, flags=re.MULTILINE)
    source = re.sub(r"^local function later_\w+\(\)$", "", source, flags=re.MULTILINE)
    source = re.sub(
        r"^return ([\w, ]+)\nend$", r"local given = {= \1,}", source, flags=re.MULTILINE
    )
    return re.sub(
        r"^local function \w+_key\(\w+\)\n    return [^\n]+\nend$", "", source, flags=re.MULTILINE
    )


def _reached(source: str) -> list[str]:
    """What runs whenever the script does, and every function that it may call from there."""
    functions = {found[1]: found[0] for found in _FUNCTION.finditer(source)}
    reached = [_FUNCTION.sub("", source)]
    known: set[str] = set()
    for text in reached:
        for called in map("".join, _CALL.findall(text)):
            if called in functions and called not in known:
                known.add(called)
                reached.append(functions[called])
    return reached


def _only_reads(text: str) -> bool:
    """Whether a function does nothing but read a key that it is given the name of."""
    called = {*_CALLED.findall(text)}
    return bool(_INDIRECT.search(text)) and bool(called) and called <= READING


def _locals(text: str) -> dict[str, set[str]]:
    return {found[1]: _family(*found.groups()[1:]) for found in _LOCAL.finditer(text)}


def _family(literal: str | None, called: str | None, variable: str | None) -> set[str]:
    if variable is not None:
        return {"ARGV"} if variable == "ARGV" else set()
    name = f"{called}:" if called else str(literal)
    return {name if name in layout() or ":" not in name else name.partition(":")[0] + ":"}
