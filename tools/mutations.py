"""Finds and draws the mutations that `tools/mutate.py` tries.

A mutation replaces a few bytes of one file. Python is mutated by its syntax tree, which leaves out
docstrings, annotations, log messages, f-strings, `__repr__` and `TYPE_CHECKING` blocks. SQL and Lua
are mutated by their operators, outside comments and strings. A draw takes the packages in turn and
gives each kind of mutation the same chance, so that neither large packages nor frequent kinds
dominate.
"""

import ast
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

PACKAGES = ("model", "worker", "store", "events", "apps/recorder", "apps/agents")
SKIPPED = ("demo", "bench", "migrations")
"""File and folder names without mutations; the text of a migration is pinned."""

_COMPARISONS: dict[type[ast.cmpop], tuple[bytes, bytes]] = {
    ast.Lt: (b"<", b"<="),
    ast.LtE: (b"<=", b"<"),
    ast.Gt: (b">", b">="),
    ast.GtE: (b">=", b">"),
    ast.Eq: (b"==", b"!="),
    ast.NotEq: (b"!=", b"=="),
    ast.Is: (b"is", b"is not"),
    ast.IsNot: (rb"is\s+not", b"is"),
    ast.In: (b"in", b"not in"),
    ast.NotIn: (rb"not\s+in", b"in"),
}
_LOG_METHODS = {"debug", "info", "warning", "error", "exception", "critical", "log"}
_TEXT_COMPARISONS = {
    ".sql": {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "=": "<>", "<>": "=", "!=": "="},
    ".lua": {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "~=", "~=": "=="},
}
_HIDDEN = {
    # Comments, strings and the placeholders of templates.
    ".sql": re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\{[^}\n]*\}", re.DOTALL),
    ".lua": re.compile(
        r"--\[\[.*?\]\]|--[^\n]*|'(?:\\.|[^'\\\n])*'|\"(?:\\.|[^\"\\\n])*\"|\[\[.*?\]\]", re.DOTALL
    ),
}
_SQL_TOKEN = re.compile(
    r"(?P<operator>[<>=!@#~&|:-]+)|(?P<mark>[();])"
    r"|\b(?P<word>CASE|END|SET|SELECT|FROM|VALUES|DEFAULT|WHERE|AND|OR|ON|HAVING|WHEN|IF|THEN|ELSE)\b",
    re.IGNORECASE,
)
_LUA_TOKEN = re.compile(r"(?P<operator>[<>=~]+)")
_CONDITIONS = {"WHERE", "AND", "OR", "ON", "HAVING", "WHEN", "IF"}
_AND_LINE = re.compile(r"^[ \t]*AND\b[^\n]*$", re.IGNORECASE | re.MULTILINE)
_BLOCK_WORD = re.compile(r"\b(THEN|DO|END)\b", re.IGNORECASE)
_OPEN_BETWEEN = re.compile(r"\bBETWEEN\s+\S+\s*$", re.IGNORECASE)


class Mutation(NamedTuple):
    """One change to one file; `start` and `end` count bytes."""

    path: str
    kind: str
    line: int
    start: int
    end: int
    replacement: str
    diff: str

    @property
    def key(self) -> str:
        """Return what tells this mutation from every other of the same commit."""
        return f"{self.path}:{self.start}:{self.end}:{self.kind}"

    def apply(self, source: bytes) -> bytes:
        """Return the mutated source."""
        return source[: self.start] + self.replacement.encode() + source[self.end :]


def draw(root: Path, count: int, seed: int) -> list[Mutation]:
    """Draw mutations, the packages in turn; no line is drawn twice."""
    chance = random.Random(seed)
    by_package = {name: _by_kind(find_in_package(root, name)) for name in PACKAGES}
    drawn: list[Mutation] = []
    lines: set[tuple[str, int]] = set()
    while len(drawn) < count and any(by_package.values()):
        for package in PACKAGES:
            kinds = by_package[package]
            while kinds and len(drawn) < count:
                kind = chance.choice(sorted(kinds))
                mutation = kinds[kind].pop(chance.randrange(len(kinds[kind])))
                if not kinds[kind]:
                    del kinds[kind]
                if (mutation.path, mutation.line) not in lines and _compiles(root, mutation):
                    lines.add((mutation.path, mutation.line))
                    drawn.append(mutation)
                    break
    return drawn


def find_in_package(root: Path, package: str) -> list[Mutation]:
    """Return every mutation of a package."""
    mutations: list[Mutation] = []
    folder = root / "src" / "penstock" / package
    for path in sorted(folder.rglob("*")):
        inside = path.relative_to(folder)
        if path.suffix in (".py", *_HIDDEN) and not {*inside.parts[:-1], path.stem} & {*SKIPPED}:
            mutations.extend(find_in_file(path.relative_to(root).as_posix(), path.read_bytes()))
    return mutations


def find_in_file(path: str, source: bytes) -> list[Mutation]:
    """Return every mutation of a file, by its suffix."""
    suffix = Path(path).suffix
    edits = find_in_python(source) if suffix == ".py" else find_in_text(suffix, source)
    return [
        Mutation(
            path,
            edit.kind,
            source.count(b"\n", 0, edit.start) + 1,
            edit.start,
            edit.end,
            edit.replacement.decode(),
            _one_line_diff(source, edit),
        )
        for edit in edits
    ]


class Edit(NamedTuple):
    """A kind of mutation, the bytes it replaces, and what with."""

    kind: str
    start: int
    end: int
    replacement: bytes


def find_in_python(source: bytes) -> Iterator[Edit]:
    """Find the edits of a Python module."""
    yield from _PythonEdits(source).edits_of(ast.parse(source))


class _PythonEdits:
    """A walk over a module that yields the edits of each node."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._line_starts = [0, *(found.end() for found in re.finditer(rb"\n", source))]

    def edits_of(self, node: ast.AST) -> Iterator[Edit]:
        """Yield the edits of a node and of those below it."""
        if _is_left_out(node):
            return
        yield from self._operators(node)
        yield from self._values(node)
        for name, child in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list", "type_params"):
                continue
            for each in child if isinstance(child, list) else [child]:
                if isinstance(each, ast.AST):
                    yield from self.edits_of(each)

    def _operators(self, node: ast.AST) -> Iterator[Edit]:
        match node:
            case ast.Compare():
                yield from self._comparisons(node)
            case ast.BoolOp():
                yield from self._boolean(node)
            case ast.BinOp(op=ast.Add() | ast.Sub()):
                yield from self._sum(node)
            case ast.UnaryOp(op=ast.Not()):
                start, end = self._span(node)
                found = re.compile(rb"not\s*").match(self._source, start, end)
                assert found is not None
                yield Edit("not", start, found.end(), b"")
            case _:
                pass

    def _values(self, node: ast.AST) -> Iterator[Edit]:
        match node:
            case ast.Constant(value=int(value)) if not isinstance(value, bool):
                yield Edit("constant", *self._span(node), str(value + 1).encode())
            case ast.Return(value=ast.expr() as value) if not _is_falsy(value):
                yield Edit("return", *self._span(value), b"None")
            case ast.Expr(value=ast.Call() | ast.Await(value=ast.Call())):
                yield Edit("call", *self._span(node), b"pass")
            case ast.If(test=test) | ast.IfExp(test=test):
                start, end = self._span(test)
                yield Edit("if", start, end, b"not (" + self._source[start:end] + b")")
            case _:
                pass

    def _comparisons(self, node: ast.Compare) -> Iterator[Edit]:
        operands = [node.left, *node.comparators]
        for left, operator, right in zip(operands, node.ops, operands[1:], strict=False):
            pattern, replacement = _COMPARISONS[type(operator)]
            yield from self._between("comparison", left, right, pattern, replacement)

    def _boolean(self, node: ast.BoolOp) -> Iterator[Edit]:
        old, new = (b"and", b"or") if isinstance(node.op, ast.And) else (b"or", b"and")
        for left, right in zip(node.values, node.values[1:], strict=False):
            yield from self._between("boolean", left, right, old, new)

    def _sum(self, node: ast.BinOp) -> Iterator[Edit]:
        """Leave out sums of texts and lists: their difference is a plain TypeError."""
        if any(_is_text_or_list(side) for side in (node.left, node.right)):
            return
        old, new = (rb"\+", b"-") if isinstance(node.op, ast.Add) else (b"-", b"+")
        yield from self._between("sum", node.left, node.right, old, new)

    def _between(
        self, kind: str, left: ast.expr, right: ast.expr, pattern: bytes, replacement: bytes
    ) -> Iterator[Edit]:
        """Replace an operator; a comment between its operands leaves it as it is."""
        start, end = self._span(left)[1], self._span(right)[0]
        found = re.compile(rb"[\s)]*(" + pattern + rb")[\s(]*").fullmatch(self._source, start, end)
        if found:
            yield Edit(kind, *found.span(1), replacement)

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._line_starts[node.lineno - 1] + node.col_offset,
            self._line_starts[node.end_lineno - 1] + node.end_col_offset,
        )


def _is_left_out(node: ast.AST) -> bool:
    match node:
        case ast.JoinedStr():  # Python 3.11 misplaces the nodes inside.
            return True
        case ast.FunctionDef(name="__repr__" | "__str__"):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            return True
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
        case ast.Expr(value=ast.Call() as call) | (ast.Call() as call):
            return _is_log(call)
        case _:
            return False


def _is_log(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(attr=method, value=ast.Name(id=name) | ast.Attribute(attr=name)):
            return method in _LOG_METHODS and "log" in name.lower()
        case _:
            return False


def _is_falsy(value: ast.expr) -> bool:
    """Return True for None and what mostly stands for it."""
    match value:
        case ast.Constant(value=constant):
            return not constant
        case ast.List(elts=[]) | ast.Tuple(elts=[]) | ast.Dict(keys=[]):
            return True
        case _:
            return False


def _is_text_or_list(side: ast.expr) -> bool:
    match side:
        case ast.Constant(value=str() | bytes()):
            return True
        case ast.BinOp(left=left, right=right):
            return _is_text_or_list(left) or _is_text_or_list(right)
        case _:
            return isinstance(side, ast.JoinedStr | ast.List | ast.Tuple | ast.ListComp)


def find_in_text(suffix: str, source: bytes) -> Iterator[Edit]:
    """Find the edits of a SQL or a Lua file: comparisons, and lines that begin with AND."""
    text = source.decode()
    code = _HIDDEN[suffix].sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    language = suffix[1:]
    swaps = _TEXT_COMPARISONS[suffix]
    operators = _sql_operators(code) if suffix == ".sql" else _LUA_TOKEN.finditer(code)
    for found in operators:
        if found[0] in swaps:
            start, end = (len(text[:at].encode()) for at in found.span())
            yield Edit(f"{language} comparison", start, end, swaps[found[0]].encode())
    for found in _AND_LINE.finditer(code):
        line = found[0].rstrip()
        before = code[: found.start()]
        if line.count("(") != line.count(")") or _OPEN_BETWEEN.search(before):
            continue
        if _BLOCK_WORD.search(line):
            continue
        start = len(text[: found.start()].encode())
        end = len(text[: found.start() + len(line)].encode())
        yield Edit(f"{language} line", start, end, b";" if line.endswith(";") else b"")


def _sql_operators(code: str) -> Iterator[re.Match[str]]:
    """Yield the operators of conditions; the `=` of a SET is none of them."""
    clauses = [""]
    for found in _SQL_TOKEN.finditer(code):
        token = found[0].upper()
        if token == ";":
            clauses = [""]
        elif token in ("(", "CASE"):
            clauses.append(clauses[-1] if token == "(" else "CASE")
        elif token == ")" or (token == "END" and clauses[-1] in ("CASE", "WHEN", "THEN", "ELSE")):
            del clauses[len(clauses) - 1 if len(clauses) > 1 else 1 :]
        elif found["word"]:
            clauses[-1] = token
        elif token != "=" or clauses[-1] in _CONDITIONS:
            yield found


def _by_kind(mutations: list[Mutation]) -> dict[str, list[Mutation]]:
    kinds: defaultdict[str, list[Mutation]] = defaultdict(list)
    for mutation in mutations:
        kinds[mutation.kind].append(mutation)
    return kinds


def _compiles(root: Path, mutation: Mutation) -> bool:
    """Return False if the mutated Python is no Python; SQL and Lua keep their syntax."""
    if not mutation.path.endswith(".py"):
        return True
    try:
        compile(mutation.apply((root / mutation.path).read_bytes()), mutation.path, "exec")
    except (SyntaxError, ValueError):
        return False
    return True


def _one_line_diff(source: bytes, edit: Edit) -> str:
    """Return the line before and after; an ellipsis stands for lines that follow."""
    line_start = source.rfind(b"\n", 0, edit.start) + 1
    line_end = source.find(b"\n", edit.end)
    tail = source[edit.end : line_end if line_end >= 0 else None]
    old = source[line_start : edit.end] + tail
    new = source[line_start : edit.start] + edit.replacement + tail
    return f"- {_first_line(old)} + {_first_line(new)}".rstrip()


def _first_line(text: bytes) -> str:
    first, *rest = text.decode().strip().split("\n")
    return f"{first.strip()} …" if rest else first
