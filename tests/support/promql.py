"""As much of PromQL as our rules and dashboards use: enough to refuse what Prometheus would."""

import re
from typing import NamedTuple

TOKEN = re.compile(
    r"""(?P<space>\s+)
    |(?P<string>"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')
    |(?P<duration>\[(?:\d+(?:ms|[smhdwy])|\$__rate_interval|\$__interval)\])
    |(?P<number>\d+(?:\.\d+)?(?:e[+-]?\d+)?)
    |(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)
    |(?P<operator>=~|!~|!=|==|>=|<=|[-+*/%^<>=(){},])
    """,
    re.VERBOSE,
)
FUNCTIONS = {
    "rate": ("range",),
    "increase": ("range",),
    "irate": ("range",),
    "histogram_quantile": ("scalar", "vector"),
    "absent": ("vector",),
    "clamp_min": ("vector", "scalar"),
}
AGGREGATES = {"sum", "max", "min", "avg", "count"}
LEVELS = (
    {"or"},
    {"and", "unless"},
    {"==", "!=", ">", "<", ">=", "<="},
    {"+", "-"},
    {"*", "/", "%"},
)
MATCHERS = {"=", "!=", "=~", "!~"}


class Selector(NamedTuple):
    """A metric that an expression reads, and the labels by which it is chosen."""

    metric: str
    labels: frozenset[str]


class Syntax(Exception):
    """An expression that Prometheus would not take."""


class Parser:
    """Reads one expression; `selectors` and `grouped` say what it is about."""

    def __init__(self, text: str) -> None:
        self.selectors: set[Selector] = set()
        self.grouped: set[str] = set()
        self._tokens = _tokens(text)
        self._at = 0
        self._text = text

    def parse(self) -> str:
        """The kind of value: scalar, vector or range."""
        kind = self._binary(0)
        if self._at != len(self._tokens):
            raise Syntax(f"{self._peek()!r} is one too many in {self._text}")
        return kind

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _kind(self) -> str:
        return self._tokens[self._at][0] if self._at < len(self._tokens) else "end"

    def _take(self, expected: str | None = None) -> str:
        found = self._peek()
        if not found or (expected is not None and found != expected):
            raise Syntax(f"{expected or 'more'} is missing before {found!r} in {self._text}")
        self._at += 1
        return found

    def _binary(self, level: int) -> str:
        if level == len(LEVELS):
            return self._unary()
        left = self._binary(level + 1)
        while self._peek() in LEVELS[level]:
            operator = self._take()
            right = self._binary(level + 1)
            if "range" in (left, right):
                raise Syntax(f"{operator} cannot take a range in {self._text}")
            if level < 2 and "scalar" in (left, right):
                raise Syntax(f"{operator} cannot take a number in {self._text}")
            left = "vector" if "vector" in (left, right) else "scalar"
        return left

    def _unary(self) -> str:
        if self._peek() == "-":
            self._take()
        if self._peek() == "(":
            self._take()
            kind = self._binary(0)
            self._take(")")
            return kind
        if self._kind() == "number":
            self._take()
            return "scalar"
        return self._named()

    def _named(self) -> str:
        if self._kind() != "name":
            raise Syntax(f"a name is missing before {self._peek()!r} in {self._text}")
        name = self._take()
        if name in AGGREGATES:
            return self._aggregate()
        if name in FUNCTIONS:
            given = self._arguments()
            if given != FUNCTIONS[name]:
                raise Syntax(f"{name} takes {FUNCTIONS[name]}, not {given}, in {self._text}")
            return "vector"
        return self._selector(name)

    def _aggregate(self) -> str:
        if self._peek() in ("by", "without"):
            self._labels()
        if self._arguments() != ("vector",):
            raise Syntax(f"only vectors are put together: {self._text}")
        if self._peek() in ("by", "without"):
            self._labels()
        return "vector"

    def _labels(self) -> None:
        self._take()
        self._take("(")
        while True:
            self.grouped.add(self._take())
            if self._peek() != ",":
                break
            self._take()
        self._take(")")

    def _arguments(self) -> tuple[str, ...]:
        self._take("(")
        kinds = [self._binary(0)]
        while self._peek() == ",":
            self._take()
            kinds.append(self._binary(0))
        self._take(")")
        return tuple(kinds)

    def _selector(self, metric: str) -> str:
        labels: set[str] = set()
        if self._peek() == "{":
            self._take()
            while self._peek() != "}":
                labels.add(self._take())
                if self._take() not in MATCHERS or self._kind() != "string":
                    raise Syntax(f"a label of {metric} has no value in {self._text}")
                self._take()
                if self._peek() != "}":
                    self._take(",")
            self._take("}")
        self.selectors.add(Selector(metric, frozenset(labels)))
        if self._kind() == "duration":
            self._take()
            return "range"
        return "vector"


def _tokens(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    at = 0
    while at < len(text):
        match = TOKEN.match(text, at)
        if match is None:
            raise Syntax(f"{text[at : at + 10]!r} means nothing in {text}")
        if match.lastgroup != "space":
            found.append((str(match.lastgroup), match[0]))
        at = match.end()
    return found
