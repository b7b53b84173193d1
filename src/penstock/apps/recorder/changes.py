"""What tools do to files: which file, how many lines, and whether a later one takes it back."""

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from penstock.apps.recorder.captured import digest

WRITE, EDIT, DELETE = "write", "edit", "delete"
SHELLS = frozenset(
    {"bash", "shell", "run_shell_command", "run_terminal_cmd", "local_shell", "run_command"}
)
_EDITS = re.compile(r"edit|write|replace|create_file|^create$|apply_patch|delete_file", re.I)
_PATHS = (
    *("file_path", "path", "target_file", "notebook_path", "absolute_path", "filePath"),
    "TargetFile",
)
_OLD = ("old_string", "old_str", "oldText", "old_source")
_NEW = ("new_string", "new_str", "newText", "new_source")
_WHOLE = ("content", "file_text", "contents", "code_edit")
_PATCHED = re.compile(r"^\*\*\* (Add|Update|Delete) File: (.+)$", re.MULTILINE)


class Change(NamedTuple):
    """A file that was changed, and hashes of what stood there before and stands there now."""

    file_path: str
    kind: str
    added: int
    removed: int
    before: str = ""
    after: str = ""

    def takes_back(self, other: "Change") -> bool:
        """Whether this change undoes another one of the same file."""
        if self.file_path != other.file_path:
            return False
        if self.kind == DELETE:
            return other.kind == WRITE
        return bool(self.before or self.after) and (self.before, self.after) == (
            other.after,
            other.before,
        )


def edits_files(tool: str) -> bool:
    """Whether a tool of this name changes files."""
    return _EDITS.search(tool) is not None


def changes_of(tool: str, input_: Mapping[str, Any], output: Any = None) -> Iterator[Change]:
    """The changes that a tool has made."""
    patch = _patch(tool, input_)
    if patch is not None:
        yield from _of_patch(patch)
        return
    if not edits_files(tool):
        return
    path = _first(input_, _PATHS)
    if not path:
        return
    if "delete" in tool.lower():
        yield Change(path, DELETE, 0, 0)
        return
    edits = input_.get("edits")
    if isinstance(edits, list):
        yield edited(path, edits)
        return
    whole = _first(input_, _WHOLE)
    if whole is not None and _first(input_, _OLD) is None:
        added, removed = _counted(output) or (_lines(whole), 0)
        yield Change(path, WRITE, added, removed, _original(output), digest(whole))
        return
    yield edited(path, [input_])


def edited(path: str, edits: list[Any]) -> Change:
    """A change of one file by replacements of texts."""
    old, new = [], []
    for edit in edits:
        if isinstance(edit, Mapping):
            old.append(_first(edit, _OLD) or "")
            new.append(_first(edit, _NEW) or "")
    removed, added = sum(map(_lines, old)), sum(map(_lines, new))
    return Change(path, EDIT, added, removed, digest(*old), digest(*new))


def takes_back_by_git(command: str, path: str) -> bool:
    """Whether a command line throws away a change of a file that was not committed."""
    try:
        words = shlex.split(command)
    except ValueError:
        words = command.split()
    for n, word in enumerate(words):
        if word == "rm" and _names(words[n + 1 :], path):
            return True
        if word != "git" or n + 1 >= len(words):
            continue
        verb, rest = words[n + 1], words[n + 2 :]
        if verb == "stash" and (not rest or rest[0] in ("push", "-u", "save")):
            return True
        if verb == "reset" and "--hard" in rest:
            return True
        if verb in ("checkout", "restore") and ("." in rest or _names(rest, path)):
            return True
    return False


def _names(words: list[str], path: str) -> bool:
    return any(
        not word.startswith("-") and (path == word or path.endswith(f"/{word.removeprefix('./')}"))
        for word in words
    )


def _patch(tool: str, input_: Mapping[str, Any]) -> str | None:
    """A patch in the form of Codex, given to its tool or to a shell."""
    if tool.lower() not in SHELLS and "patch" not in tool.lower():
        return None
    for name in ("patch", "input", "command"):
        given = input_.get(name)
        text = "\n".join(map(str, given)) if isinstance(given, list) else given
        if isinstance(text, str) and "*** Begin Patch" in text:
            return text
    return None


def patched(patch: str) -> list[str]:
    """The files that a patch in the form of Codex changes."""
    return [header[2].strip() for header in _PATCHED.finditer(patch)]


def _of_patch(patch: str) -> Iterator[Change]:
    found = list(_PATCHED.finditer(patch))
    for n, header in enumerate(found):
        end = found[n + 1].start() if n + 1 < len(found) else len(patch)
        lines = patch[header.end() : end].splitlines()
        old = [line[1:] for line in lines if line.startswith("-")]
        new = [line[1:] for line in lines if line.startswith("+")]
        kind = {"Add": WRITE, "Update": EDIT, "Delete": DELETE}[header[1]]
        yield Change(header[2].strip(), kind, len(new), len(old), digest(*old), digest(*new))


def _counted(output: Any) -> tuple[int, int] | None:
    """Lines added and removed, where a tool tells of them as a patch."""
    hunks = output.get("structuredPatch") if isinstance(output, Mapping) else None
    if not isinstance(hunks, list) or not hunks:
        return None
    lines = [
        line
        for hunk in hunks
        if isinstance(hunk, Mapping)
        for line in hunk.get("lines", ())
        if isinstance(line, str)
    ]
    return sum(line[:1] == "+" for line in lines), sum(line[:1] == "-" for line in lines)


def _original(output: Any) -> str:
    """A hash of what a file held before it was written, where a tool tells."""
    original = output.get("originalFile") if isinstance(output, Mapping) else None
    return digest(original) if isinstance(original, str) else ""


def _first(given: Mapping[str, Any], names: tuple[str, ...]) -> str | None:
    for name in names:
        found = given.get(name)
        if isinstance(found, str):
            return found
    return None


def _lines(text: str) -> int:
    return text.count("\n") + (not text.endswith("\n")) if text else 0
