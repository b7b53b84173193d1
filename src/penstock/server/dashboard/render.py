"""Templates to HTML: everything is escaped unless a filter here made it."""

import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined, pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from penstock.client.documents import decoded
from penstock.model import spans
from penstock.model.clock import iso
from penstock.model.counted import counted
from penstock.model.errors import InvalidOption
from penstock.model.failure import attempts_allowed, bound_by
from penstock.server.dashboard.json_view import json_view

FOLDER = Path(__file__).parent / "templates"

GIGABYTE = 1_024
WORDS = {"in_progress": "running"}
"""How a page calls a status, where its name is not what people say."""


@cache
def environment() -> Environment:
    """The templates with their filters."""
    made = Environment(
        loader=FileSystemLoader(FOLDER),
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
        "span": spans.span,
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
        "attempts_allowed": attempts_allowed,
        "bound_by": bound_by,
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
    return _time(ms, spans.ago(ms, context["now"]))


def time(ms: int | None) -> Markup:
    """A time in full, in UTC."""
    if ms is None:
        return Markup("–")
    told = _iso(ms)
    return _time(ms, f"{told[:10]} {told[11:19]} UTC")


@pass_context
def clock(context: Context, ms: int | None) -> Markup:
    """A time in UTC to the second, with its date unless that is today."""
    if ms is None:
        return Markup("–")
    told = _iso(ms)
    date = "" if told[:10] == _iso(context["now"])[:10] else f"{told[:10]} "
    return _time(ms, f"{date}{told[11:19]} UTC")


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
def linked(context: Context, sentence: str, jobs: Sequence[str]) -> Markup:
    """A sentence in which the ids of jobs are links."""
    shown = code(sentence)
    for job_id in jobs:
        link = Markup('<a href="{}"><code>…{}</code></a>').format(
            context["url"](f"jobs/{job_id}"), job_id[-6:]
        )
        shown = Markup(shown.replace(escape(job_id), link))
    return shown


def _time(ms: int, words: str) -> Markup:
    told = _iso(ms)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(told, told, words)


def _iso(ms: int) -> str:
    try:
        return iso(ms)
    except InvalidOption:
        return str(ms)


def rendered(template: str, context: dict[str, Any]) -> str:
    """A template with what it needs."""
    return environment().get_template(template).render(context)
