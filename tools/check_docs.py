"""Checks that the docs are true: generated parts, links, decisions, code, commands, names."""

import ast
import re
import sys
import textwrap
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

from commands import children_of
from generate_docs import stale_pages

import penstock
from penstock.model.job import OPTIONS

Options = list[list[str]]

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<info>[^\n]*)\n(?P<code>.*?)^ *```$", re.DOTALL | re.MULTILINE
)
_INFO = re.compile(
    r"\w*|bash \{\.run\}|python \{\.run( \.(postgres|redis))*\}"
    r'|python title="[\w./-]+"'  # a file of a project that a test of the page writes and runs
)
_OPENING = re.compile(r"# [^\n]+\n\n(?!#|```|\||!|<|- )\S")
_LINK = re.compile(r"\[[^\]]*\]\((?!\w+:)([^)\s]+)\)")
_PLACE = re.compile(
    r"`((?:src|proof|tests|tools|docs|cli|server|worker|upkeep|app|operate|remote|store|model)/[\w./-]+)`"
)
_HEADING = re.compile(r"^#{1,6} +(.+?)\s*$", re.MULTILINE)
_CODE_SPAN = re.compile(r"`[^`\n]*`")


def pages() -> list[Path]:
    """Every page: those of the project's root, and all of docs/."""
    return sorted(ROOT.glob("*.md")) + sorted(DOCS.rglob("*.md"))


def generated_parts() -> Iterator[str]:
    """Parts made from code that no longer match it."""
    for page in stale_pages():
        yield f"{page.relative_to(ROOT)} differs from the code; run `make docs`."


def links() -> Iterator[str]:
    """Relative links to a file or heading that does not exist."""
    for page in pages():
        text = _CODE_SPAN.sub("", _FENCE.sub("", page.read_text("utf-8")))
        for link in _LINK.findall(text):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            if not target.exists():
                yield f"{page.relative_to(ROOT)} links to {link}, which does not exist."
            elif anchor and anchor not in anchors(target):
                yield f"{page.relative_to(ROOT)} links to {link}, which has no such heading."


def source_paths() -> Iterator[str]:
    """Files that a page names and the project, or its package, does not have."""
    for page in pages():
        for path in _PLACE.findall(page.read_text("utf-8")):
            if not (ROOT / path).exists() and not (ROOT / "src/penstock" / path).exists():
                yield f"{page.relative_to(ROOT)} names {path}, which does not exist."


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found: dict[str, int] = {}
    names = set()
    for heading in _HEADING.findall(_FENCE.sub("", page.read_text("utf-8"))):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        repeats = found.get(name, 0)
        found[name] = repeats + 1
        names.add(f"{name}-{repeats}" if repeats else name)
    return names


def decisions() -> Iterator[str]:
    """Decisions that the index does not list."""
    index = (DOCS / "adr" / "README.md").read_text("utf-8")
    for page in sorted((DOCS / "adr").glob("[0-9]*.md")):
        if f"({page.name})" not in index:
            yield f"docs/adr/README.md does not list {page.name}."


def listed() -> Iterator[str]:
    """Pages that docs/README.md does not list, and that are in no group of the site for it."""
    index = (DOCS / "README.md").read_text("utf-8")
    for page in sorted(DOCS.rglob("*.md")):
        name = page.relative_to(DOCS).as_posix()
        if name != "README.md" and page.parent.name != "adr" and f"]({name})" not in index:
            yield f"docs/README.md does not list {name}; add it to a group with what it is about."


def openings() -> Iterator[str]:
    """Pages that do not say what they are for before anything else."""
    for page in sorted(DOCS.rglob("*.md")):
        if page.parent.name != "adr" and not _OPENING.match(page.read_text("utf-8")):
            name = page.relative_to(ROOT)
            yield f"{name} has to begin with its title and a sentence that says what it is for."


def python_blocks() -> Iterator[str]:
    """Examples that are not Python, or whose marker means nothing, so that none would run."""
    for page in pages():
        for block in _FENCE.finditer(page.read_text("utf-8")):
            if not _INFO.fullmatch(block["info"]):
                yield (
                    f"{page.relative_to(ROOT)} marks an example as ```{block['info']}; write "
                    "```python {.run} to have it run, with .postgres or .redis for its servers."
                )
            if not block["info"].startswith("python"):
                continue
            try:
                # Examples may await at the top level, as the interactive shell of asyncio does.
                flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
                compile(textwrap.dedent(block["code"]), page.name, "exec", flags=flags)
            except SyntaxError as error:
                code = error.text or ""
                yield f"{page.relative_to(ROOT)} has an example that is not Python: {code.strip()}"


def commands() -> Iterator[str]:
    """What docs/cli.md does not mention: commands, options; and commands that do not exist."""
    try:
        cli = import_module("penstock.cli")
    except ImportError:
        return
    if cli.__file__ is None:  # a folder without a package in it
        return
    from typer.main import get_command

    page = DOCS / "cli.md"
    text = page.read_text("utf-8") if page.exists() else ""
    known = dict(_commands(get_command(cli.app), ()))
    for path, options in known.items():
        if not re.search(rf"penstock {' '.join(path)}(?![\w-])", text):
            yield f"docs/cli.md does not mention `penstock {' '.join(path)}`."
        for spellings in options:
            if not any(re.search(rf"{each}(?![\w-])", text) for each in spellings):
                yield f"docs/cli.md does not mention {spellings[0]} of `penstock {' '.join(path)}`."
    starts = {path[:length] for path in known for length in (1, 2)}
    groups = {path[0] for path in known if len(path) > 1}
    for line in re.findall(r"(?:`|^\$ )penstock ([a-z][\w -]*)", text, re.MULTILINE):
        words = tuple(line.split()[:2])
        if words[: 2 if words[0] in groups else 1] not in starts:
            yield f"docs/cli.md mentions `penstock {' '.join(words)}`, which is no command."


def explained_options() -> Iterator[str]:
    """Options of a call that the guide does not explain."""
    table = (DOCS / "guide" / "jobs.md").read_text("utf-8")
    flows = (DOCS / "guide" / "flows.md").read_text("utf-8")
    for name in OPTIONS:
        if f"`{name}`" not in table and f"{name}=" not in flows:
            yield f"docs/guide/jobs.md does not explain the option {name}."


def _commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Options]]:
    """Every command with the spellings of each of its long options."""
    children = children_of(command)
    if path and not children:
        spelled = [[*each.opts, *each.secondary_opts] for each in command.params]
        yield path, [each for each in spelled if each[0].startswith("--")]
    for name, child in children.items():
        if not child.hidden:
            yield from _commands(child, (*path, name))


def public_names() -> Iterator[str]:
    """Public names that no page mentions."""
    text = "\n".join(page.read_text("utf-8") for page in pages() if page.name != "CHANGELOG.md")
    for name in getattr(penstock, "__all__", ()):
        if not name.startswith("__") and not re.search(rf"\b{name}\b", text):
            yield f"No page mentions penstock.{name}."


CHECKS = (
    generated_parts,
    links,
    source_paths,
    decisions,
    listed,
    openings,
    python_blocks,
    commands,
    explained_options,
    public_names,
)


def main() -> int:
    """Print every problem; 1 if there is any."""
    problems = [problem for check in CHECKS for problem in check()]
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
