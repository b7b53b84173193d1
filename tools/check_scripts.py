"""Check the Lua scripts of the Redis store as files: headers, keys, and that nothing is unused.

A script is a file that Python calls; a part is a file that others include by `-- needs:`. What the
servers make of the scripts is tested in `tests/store/redis/test_scripts.py`.
"""

import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from importlib.resources import files

from tools.lua_keys import header_of, keys_of, layout

File = tuple[str, str]
"""Folder and name of a file: `("scripts", "claim")`."""

SHORTEST_PHRASE = 40
NEEDED = re.compile(r"^-- (?:needs: ([\w ]+)$|later: (\w+) gives)", re.MULTILINE)
KEYS_NAMED = re.compile(r"^-- (?:reads|writes): .*\n(?:--   \S.*\n)*", re.MULTILINE)
FUNCTION = re.compile(r"^local function (\w+)", re.MULTILINE)
WORD = re.compile(r"\w+")


def read_scripts() -> dict[File, str]:
    """Return the text of every Lua file of the Redis store."""
    return {
        (folder.name, file.name.removesuffix(".lua")): file.read_text("utf-8")
        for folder in files("penstock.store.redis").joinpath("lua").iterdir()
        for file in folder.iterdir()
    }


def problems(texts: Mapping[File, str]) -> Iterator[str]:
    """Yield one sentence per problem."""
    for file, text in sorted(texts.items()):
        yield from _unexplained(file, text)
        if file[0] == "scripts":
            yield from _wrong_keys(file, text)
    yield from _unused_files(texts)
    yield from _unused_functions(texts)


def _unexplained(file: File, text: str) -> Iterator[str]:
    """Yield a problem unless the first line is a comment that says what the file is for."""
    first = text.partition("\n")[0]
    if not first.startswith("-- "):
        yield f"{_path(file)} does not begin with a comment that says what it is for."
    elif not first.endswith((".", ":", ",")) and len(first) <= SHORTEST_PHRASE:
        yield f"{_path(file)} begins with a comment that is no sentence: {first!r}."


def _wrong_keys(file: File, text: str) -> Iterator[str]:
    """Yield a problem if the header names other keys than the script touches."""
    header = "".join(KEYS_NAMED.findall(text))
    expected = header_of(file[1])
    if header != expected:
        yield f"{_path(file)} names its keys as {header!r}; its commands touch {expected!r}."
    reads, writes = keys_of(file[1])
    unknown = (reads | writes) - layout() - {"ARGV", "*"}
    if unknown:
        yield f"{_path(file)} touches keys that common.lua does not list: {_listed(unknown)}."


def _unused_files(texts: Mapping[File, str]) -> Iterator[str]:
    """Yield scripts that Python does not call, unused parts, and parts that do not exist."""
    package = files("penstock.store.redis")
    python = [file.read_text("utf-8") for file in package.iterdir() if file.name.endswith(".py")]
    named = NEEDED.findall("\n".join(texts.values()))
    needed = {part for names in named for part in " ".join(names).split()}
    parts = {name for folder, name in texts if folder == "parts"}
    for folder, name in sorted(texts):
        if folder == "scripts" and not any(f'"{name}"' in text for text in python):
            yield f"{_path((folder, name))} is called by no file of the package."
        if folder == "parts" and name not in needed:
            yield f"{_path((folder, name))} is needed by no other file."
    if needed - parts:
        yield f"Files need parts that do not exist: {_listed(needed - parts)}."


def _unused_functions(texts: Mapping[File, str]) -> Iterator[str]:
    """Yield functions that are defined and never used."""
    words = Counter(WORD.findall("\n".join(texts.values())))
    for file, text in sorted(texts.items()):
        for name in FUNCTION.findall(text):
            if words[name] == 1:
                yield f"{_path(file)} defines {name}, which is never used."


def _path(file: File) -> str:
    return f"lua/{file[0]}/{file[1]}.lua"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def main() -> int:
    """Print every problem; return 1 if there is any."""
    sentences = list(problems(read_scripts()))
    for sentence in sentences:
        print(sentence, file=sys.stderr)
    return 1 if sentences else 0


if __name__ == "__main__":
    sys.exit(main())
