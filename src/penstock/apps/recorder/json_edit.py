"""Edit a JSON file that somebody else keeps: what is not ours stays as it is, byte for byte.

Comments and trailing commas, which some assistants allow in their settings, stay as well.
"""

import json
import re
from typing import Any, NamedTuple

from penstock.model.errors import InvalidOption

_SPACE = re.compile(r"(?:\s|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_PLAIN = re.compile(r"[^\s,\[\]{}:\"/]+")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)


class BrokenSettings(InvalidOption):
    """Settings of an assistant that cannot be edited as they are."""

    def __init__(self, place: str, problem: str) -> None:
        super().__init__("settings", place, "JSON")
        self.place = place
        self.problem = problem
        self.args = (f"{place} {problem}; nothing was changed.",)


class Node(NamedTuple):
    """A value of a text: where it stands, and where those in it stand.

    A list has its values in `items`, an object those of its `names` in their order. `begins` is
    where a value begins with its name.
    """

    start: int
    end: int
    begins: int
    items: "tuple[Node, ...]" = ()
    names: tuple[str, ...] | None = None
    is_list: bool = False

    def get(self, name: str) -> "Node | None":
        """The value under a name; the last, if there are several."""
        if self.names is None or name not in self.names:
            return None
        return self.items[len(self.names) - 1 - self.names[::-1].index(name)]


class JsonText:
    """A text of JSON, changed piece by piece."""

    def __init__(self, text: str, place: str) -> None:
        self.text = text or "{}\n"
        self._place = place
        self._indent = _indent_of(self.text)
        self._read: tuple[str, Node] | None = None

    @property
    def root(self) -> Node:
        """All of it, as it stands now."""
        if self._read is None or self._read[0] is not self.text:
            if self._skip(0) == len(self.text):
                self.text = "{}\n"
            at = self._skip(0)
            node = self._value(at, at)
            if self._skip(node.end) != len(self.text) or node.names is None:
                raise self._broken(node.end)
            self._read = self.text, node
        return self._read[1]

    def value(self, node: Node) -> Any:
        """What a node stands for."""
        if node.names is not None:
            return {
                name: self.value(item) for name, item in zip(node.names, node.items, strict=True)
            }
        if node.is_list:
            return [self.value(item) for item in node.items]
        try:
            return json.loads(self.text[node.start : node.end])
        except ValueError:
            raise self._broken(node.start) from None

    def find(self, *path: str) -> Node | None:
        """The value at a path of names."""
        node: Node | None = self.root
        for name in path:
            node = None if node is None else node.get(name)
        return node

    def add(self, path: tuple[str, ...], value: Any, name: str | None = None) -> None:
        """Put a value at the end of the list, or under a name into the object, at a path."""
        parent = self.find(*path)
        if parent is None or (name is None) != parent.is_list or not _holds(parent):
            what = "a list" if name is None else "an object"
            raise BrokenSettings(self._place, f"has something else than {what} at {path[-1]!r}")
        depth = len(path) + 1
        lines = "\n" in self.text[parent.start : parent.end] or not parent.items
        written = self._written(value, depth, lines=lines)
        if name is not None:
            written = f"{json.dumps(name)}: {written}"
        before = f"\n{self._indent * depth}" if lines else " "
        if not parent.items:
            after = f"\n{self._indent * (depth - 1)}"
            self._replace(parent.start + 1, parent.end - 1, f"{before}{written}{after}")
            return
        last = parent.items[-1].end
        comma = self._skip(last)
        if self.text[comma] == ",":
            self._replace(comma + 1, comma + 1, f"{before}{written}")
        else:
            self._replace(last, last, f",{before}{written}")

    def put(self, node: Node, value: Any, depth: int) -> None:
        """Put another value in the place of one."""
        lines = "\n" in self.text[node.start : node.end]
        self._replace(node.start, node.end, self._written(value, depth, lines=lines))

    def remove(self, path: tuple[str, ...], child: Node) -> None:
        """Take a value out of the list or object at a path."""
        parent = self.find(*path)
        assert parent is not None
        n = parent.items.index(child)
        if len(parent.items) == 1:
            self._replace(parent.start + 1, parent.end - 1, "")
        elif n:
            self._replace(parent.items[n - 1].end, child.end, "")
        else:
            self._replace(child.begins, parent.items[1].begins, "")

    def _written(self, value: Any, depth: int, *, lines: bool) -> str:
        if not lines:
            return json.dumps(value, ensure_ascii=False)
        text = json.dumps(value, ensure_ascii=False, indent=self._indent)
        return text.replace("\n", f"\n{self._indent * depth}")

    def _replace(self, start: int, end: int, text: str) -> None:
        self.text = self.text[:start] + text + self.text[end:]

    def _skip(self, at: int) -> int:
        found = _SPACE.match(self.text, at)
        return found.end() if found else at

    def _value(self, at: int, begins: int) -> Node:
        first = self.text[at : at + 1]
        if first == "{":
            return self._members(at, begins)
        if first == "[":
            return self._elements(at, begins)
        found = (_STRING if first == '"' else _PLAIN).match(self.text, at)
        if found is None:
            raise self._broken(at)
        return Node(at, found.end(), begins)

    def _members(self, start: int, begins: int) -> Node:
        names: list[str] = []
        items: list[Node] = []
        at = self._skip(start + 1)
        while self.text[at : at + 1] != "}":
            name = _STRING.match(self.text, at)
            if name is None:
                raise self._broken(at)
            colon = self._skip(name.end())
            if self.text[colon : colon + 1] != ":":
                raise self._broken(colon)
            names.append(json.loads(name[0]))
            items.append(self._value(self._skip(colon + 1), at))
            at = self._after(items[-1], "}")
        return Node(start, at + 1, begins, tuple(items), tuple(names))

    def _elements(self, start: int, begins: int) -> Node:
        items: list[Node] = []
        at = self._skip(start + 1)
        while self.text[at : at + 1] != "]":
            items.append(self._value(at, at))
            at = self._after(items[-1], "]")
        return Node(start, at + 1, begins, tuple(items), is_list=True)

    def _after(self, item: Node, closing: str) -> int:
        at = self._skip(item.end)
        if self.text[at : at + 1] == ",":
            return self._skip(at + 1)
        if self.text[at : at + 1] != closing:
            raise self._broken(at)
        return at

    def _broken(self, at: int) -> BrokenSettings:
        line = self.text.count("\n", 0, at) + 1
        return BrokenSettings(self._place, f"is no JSON object: see line {line}")


def _holds(node: Node) -> bool:
    return node.is_list or node.names is not None


def _indent_of(text: str) -> str:
    found = re.search(r"\n([ \t]+)\S", text)
    return found[1] if found else "  "
