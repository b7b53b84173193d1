"""Templates to HTML: everything is escaped unless a filter here made it."""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any, Generic, TypeVar
from urllib.parse import quote

from fastapi import Query
from jinja2 import (
    ChoiceLoader,
    Environment,
    FileSystemLoader,
    PackageLoader,
    PrefixLoader,
    StrictUndefined,
    pass_context,
)
from jinja2.runtime import Context
from markupsafe import Markup, escape
from msgspec import Struct, convert

from penstock.model import wording
from penstock.model.clock import from_iso, iso
from penstock.model.errors import InvalidOption
from penstock.model.failure import attempt_of, attempts_allowed, bound_by, folded
from penstock.model.wording import counted
from penstock.operate.documents import decoded, rest_of_progress
from penstock.server.dashboard.charts import Chart

UNFOLDED = 12
"""Parts with more entries than this are opened by a click."""

DEEPEST = 30
"""Parts further in than this stand on one line."""

INDENT = "  "

LONGEST = 50_000
"""Documents with more characters than this are shown in part, as they are."""


def json_view(document: Any) -> Markup:
    """A stored document, or a text that holds one."""
    text = document if isinstance(document, str) else json.dumps(document, default=str)
    if len(text) > LONGEST:
        more = Markup('<span class="word">… and {:,} more characters, which the API has</span>')
        return escape(text[:LONGEST]) + more.format(len(text) - LONGEST)
    try:
        return _value(decoded(document), 0)
    except RecursionError:
        return escape(document)


def _value(value: Any, depth: int) -> Markup:
    if depth > DEEPEST:
        return _part("word", value)
    if isinstance(value, dict):
        entries = (
            _part("key", key) + ": " + _value(each, depth + 1) for key, each in value.items()
        )
        return _container("{", "}", entries, len(value), "field", depth)
    if isinstance(value, list):
        entries = (_value(each, depth + 1) for each in value)
        return _container("[", "]", entries, len(value), "item", depth)
    kind = "text" if isinstance(value, str) else "number" if _is_number(value) else "word"
    return _part(kind, value)


def _container(
    first: str, last: str, entries: Iterable[Markup], size: int, noun: str, depth: int
) -> Markup:
    if not size:
        return Markup(first + last)
    between = Markup(",\n" + INDENT * (depth + 1))
    inside = Markup("\n{}{}\n{}{}").format(
        INDENT * (depth + 1), between.join(entries), INDENT * depth, last
    )
    if depth == 0 or size <= UNFOLDED:
        return Markup(first) + inside
    return Markup("<details><summary>{} {} {}s</summary>{}</details>").format(
        first, size, noun, inside
    )


def _part(kind: str, value: Any) -> Markup:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return Markup('<span class="{}">{}</span>').format(kind, text)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


T = TypeVar("T")

SHOWN = 100
PageNumber = Annotated[int, Query(ge=1, le=10_000)]
Find = Annotated[str, Query(max_length=200)]
"""A part of the names that are looked for; upper and lower case are the same."""


class Piece(Struct, Generic[T], frozen=True):
    """The rows of one page, which page it is, and how many rows there are in all."""

    rows: list[T]
    number: int
    of: int

    @property
    def following(self) -> int | None:
        """The number of the next page, if there is one."""
        return self.number + 1 if self.number * SHOWN < self.of else None

    @property
    def before(self) -> int | None:
        """The number of the page before, if there is one."""
        return self.number - 1 if self.number > 1 else None


def named(find: str, rows: Iterable[T], name: Callable[[T], str]) -> list[T]:
    """Those rows with a name that has the part in it."""
    part = find.strip().casefold()
    return [row for row in rows if part in name(row).casefold()]


def piece(rows: Sequence[T], number: int) -> Piece[T]:
    """One page of a list: `piece(rows, 1)` is the first."""
    start = (number - 1) * SHOWN
    return Piece(list(rows[start : start + SHOWN]), number, len(rows))


FOLDER = Path(__file__).parent / "templates"

GIGABYTE = 1_024
SHORT = 6
"""So many of the last characters tell ids apart."""
WORDS = {"in_progress": "running"}
"""How a page calls a status, where its name is not what people say."""


_MOMENT = re.compile(r"\b(?:(\d{4}-\d\d-\d\d) )?(\d\d:\d\d(?::\d\d)?) UTC\b")


Packages = tuple[tuple[str, str], ...]
"""The packages of extensions that have templates, by the names of the extensions."""


@cache
def environment(packages: Packages = ()) -> Environment:
    """The templates with their filters; those of an extension are found below its name."""
    theirs = {name: PackageLoader(package) for name, package in packages}
    made = Environment(
        loader=ChoiceLoader([FileSystemLoader(FOLDER), PrefixLoader(theirs)]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    filters: dict[str, Callable[..., Any]] = {
        "count": count,
        "counted": counted,
        "percent": percent,
        "span": wording.span,
        "ago": ago,
        "iso": time,
        "badge": badge,
        "word": word,
        "segment": segment,
        "clock": clock,
        "code": code,
        "json": json_view,
        "size": size,
        "linked": linked,
        "worker": worker,
        "folded": folded,
        "attempt": attempt_of,
        "attempts_allowed": attempts_allowed,
        "rest_of_progress": rest_of_progress,
        "bound_by": bound_by,
        "chart": chart,
    }
    made.filters.update(filters)
    return made


def count(number: float | None) -> str:
    """A number as people write it: `12,458`; with one decimal where it is small and broken."""
    if number is None:
        return "–"
    if number != round(number) and abs(number) < 100:
        return f"{number:,.1f}".removesuffix(".0")
    return f"{number:,.0f}"


def percent(fraction: float | None) -> str:
    """A part of one: `99.4 %`; only the whole is called 100 %."""
    if fraction is None:
        return "–"
    shown = f"{fraction:.1%}".replace(".0%", "%")
    return ("99.9%" if shown == "100%" and fraction < 1 else shown).replace("%", " %")


@pass_context
def ago(context: Context, ms: int | None) -> Markup:
    """A time as seen from now, with the exact one behind it."""
    if ms is None:
        return Markup("–")
    return _time(ms, wording.ago(ms, context["now"]))


def time(ms: int | None) -> Markup:
    """A time in full, in UTC."""
    if ms is None:
        return Markup("–")
    told = _iso(ms)
    return _time(ms, f"{told[:10]} {told[11:19]} UTC", "full")


@pass_context
def clock(context: Context, ms: int | None) -> Markup:
    """A time in UTC to the second, with its date unless that is today."""
    if ms is None:
        return Markup("–")
    told = _iso(ms)
    date = "" if told[:10] == _iso(context["now"])[:10] else f"{told[:10]} "
    return _time(ms, f"{date}{told[11:19]} UTC", "clock")


def chart(document: dict[str, Any]) -> Chart:
    """Lines over the same times, as extensions hand them in, for `draw` of `parts/chart.html`."""
    return convert(document, Chart)


def size(megabytes: float) -> str:
    """An amount of memory: `143 MB`, `73.1 GB`."""
    if megabytes < GIGABYTE:
        return f"{megabytes:,.0f} MB"
    return f"{megabytes / GIGABYTE:,.1f} GB"


def code(sentence: str) -> Markup:
    """A sentence in which what stands between backticks is code."""
    parts = str(escape(sentence)).split("`")
    shown = (f"<code>{part}</code>" if n % 2 else part for n, part in enumerate(parts))
    return Markup("".join(shown))


def badge(status: str, words: str | None = None) -> Markup:
    """A status with its colour."""
    shown = Markup('<span class="badge is-{}"><span>{}</span></span>')
    return shown.format(status, words or word(status))


def word(status: str) -> str:
    """A status as a page calls it."""
    return WORDS.get(status, status.replace("_", " "))


def segment(name: str) -> str:
    """A name as one part of a path."""
    return quote(name, safe="")


def pretty(document: Any) -> str:
    """A stored document, or a text that holds one, laid out for reading."""
    return json.dumps(decoded(document), indent=2, ensure_ascii=False, default=str)


@pass_context
def worker(context: Context, owner: str | None) -> Markup:
    """A worker by its name, or by its host if nobody knows it any more."""
    if owner is None:
        return Markup("–")
    name = context["workers"].get(owner, owner)
    if name == owner:
        host, _, number = owner.partition(":")
        name = f"{host} …{number[-SHORT:]}" if number else host
    elif context["caller"].tenant_id is None:
        shown = Markup('<a class="name" href="{}" title="{}">{}</a>')
        return shown.format(context["url"]("workers", find=name), owner, name)
    return Markup('<span class="name" title="{}">{}</span>').format(owner, name)


@pass_context
def linked(context: Context, sentence: str, jobs: Sequence[str]) -> Markup:
    """A sentence in which the ids of jobs are links, and its first time is one."""
    shown = Markup(_MOMENT.sub(partial(_moment, context["now"]), code(sentence), count=1))
    for job_id in jobs:
        link = Markup('<a href="{}"><code>…{}</code></a>').format(
            context["url"](f"jobs/{job_id}"), job_id[-SHORT:]
        )
        shown = Markup(shown.replace(escape(job_id), link))
    return shown


def _time(ms: int, words: str, kind: str = "") -> Markup:
    """A time that the browser tells in the reader's zone, in the way of its kind."""
    told = _iso(ms)
    shown = Markup('<time datetime="{}" title="{} UTC"{}>{}</time>')
    utc = told.replace("T", " ").removesuffix("Z")
    return shown.format(told, utc, Markup(f' data-told="{kind}"') if kind else "", words)


def _moment(now: int, found: re.Match[str]) -> str:
    """A time of day in a sentence, as something that the browser can tell in the reader's zone."""
    date, told = found[1] or _iso(now)[:10], found[2]
    seconds = told.count(":") == len("::")
    try:
        ms = from_iso(f"{date}T{told}{'' if seconds else ':00'}Z")
    except InvalidOption:
        return found[0]
    return _time(ms, found[0], "clock" if seconds else "minute")


def _iso(ms: int) -> str:
    try:
        return iso(ms)
    except InvalidOption:
        return str(ms)


def rendered(template: str, context: dict[str, Any], packages: Packages = ()) -> str:
    """A template with what it needs."""
    return environment(packages).get_template(template).render(context)
