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
from penstock.model.errors import InvalidOption

FOLDER = Path(__file__).parent / "templates"

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
        "percent": percent,
        "span": spans.span,
        "ago": ago,
        "iso": time,
        "badge": badge,
        "word": word,
        "segment": segment,
        "pretty": pretty,
        "linked": linked,
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
    opened = decoded(document) if isinstance(document, str) else document
    return json.dumps(opened, indent=2, ensure_ascii=False, default=str)


@pass_context
def linked(context: Context, sentence: str, jobs: Sequence[str]) -> Markup:
    """A sentence in which the ids of jobs are links."""
    shown = escape(sentence)
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
