"""Checks a built site: links and anchors lead somewhere, and nothing is loaded from elsewhere."""

from collections.abc import Iterator
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_LOADS = {"script", "img", "iframe", "source", "video", "audio", "embed"}


class Page(HTMLParser):
    """What a page can be jumped to by, where it leads, and what it loads."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.loads: set[str] = set()
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the ids, links and loaded files of one element."""
        found = {name: value for name, value in attrs if value}
        self.anchors |= {found[name] for name in ("id", "name") if name in found}
        loads = tag in _LOADS or (tag == "link" and found.get("rel") != "canonical")
        for name in ("href", "src"):
            if name in found:
                (self.loads if loads else self.links).add(found[name])


def problems(site: Path) -> Iterator[str]:
    """Every broken link and every foreign file, as a sentence that names page and link."""
    page_of = cache(Page)
    for path in sorted(site.rglob("*.html")):
        name = path.relative_to(site)
        page = page_of(path)
        for link in sorted(page.loads | page.links):
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                if link in page.loads and parts.scheme != "data":
                    yield f"{name} loads {link}, which is on another host."
                continue
            target = _file(site, path, unquote(parts.path))
            if not target.is_file():
                yield f"{name} links to {link}, which does not exist."
                continue
            anchored = parts.fragment and target.suffix == ".html"
            if anchored and unquote(parts.fragment) not in page_of(target).anchors:
                yield f"{name} links to {link}, which has no such anchor."


def _file(site: Path, page: Path, path: str) -> Path:
    """The file that a link's path means: a folder stands for its index.html."""
    start = site if path.startswith("/") else page.parent
    target = (start / path.lstrip("/")).resolve() if path else page
    return target / "index.html" if target.is_dir() else target
