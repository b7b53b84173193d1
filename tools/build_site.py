"""Builds the documentation site: `python tools/build_site.py [VERSION]`, into build/site/VERSION.

The order of its pages is that of docs/README.md, whose headings are the groups. What another page
links to becomes a page, too, wherever it is in the project. The reference of the Python names is
made from their docstrings; `llms.txt` and `llms-full.txt` are the pages for those who read text.
"""

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from enum import EnumMeta
from importlib import import_module
from pathlib import Path
from string import Template
from typing import Any

import msgspec

import penstock
import penstock.extension
import penstock.testing
from hatch_build import bring
from tools.check_site import problems

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CONFIG = DOCS / "site"
WORK = ROOT / "build" / "site-work"
SITE = ROOT / "build" / "site"
MERMAID = {"mermaid.js": "@mermaid-js/tiny/dist/mermaid.tiny.js"}

REFERENCE = {
    "The application": (
        "What a program declares its jobs with, and enqueues them by.",
        ["Penstock", "Blueprint", "JobType", "Prepared", "JobHandle", "inject", "hashed_key"],
    ),
    "In a handler": (
        "What a handler is given, and what it may raise or return beside a value.",
        ["Context", "Retry", "Snooze", "Cancel", "Dead"],
    ),
    "Flows": (
        "Jobs after jobs, one after the other and side by side.",
        ["chain", "group", "after", "Chain", "Group", "FlowHandle"],
    ),
    "Workers and settings": (
        "What runs jobs, and what is configured.",
        ["Worker", "Settings", "load_settings"],
    ),
    "Jobs as they are read": (
        "What `app.get`, `app.find` and the context give.",
        ["Job", "Status", "KeyScope", "ErrorClass"],
    ),
    "Errors": (
        "What is raised to a caller; all are a `PenstockError`.",
        [
            "PenstockError",
            "JobNotFound",
            "JobFailed",
            "JobCancelled",
            "ResultTimeout",
            "QueueFull",
            "CanariesUnproven",
        ],
    ),
    "What an operator does": (
        "`app.controls`, `app.schedules` and `app.dead`.",
        [
            "operate.controls.Controls",
            "operate.schedules.Schedules",
            "operate.dead.DeadLetters",
        ],
    ),
    "Through a server": (
        "The application's methods in a process that cannot reach its store.",
        ["connect", "remote.client.Remote"],
    ),
    "Testing": (
        "What tests of your own jobs use.",
        [f"testing.{name}" for name in penstock.testing.__all__],
    ),
    "Extensions": (
        "What an extension is made of.",
        # Sorting is stable: the whole first, then its parts as they are listed.
        [
            f"extension.{name}"
            for name in sorted(penstock.extension.__all__, key=lambda name: name != "Extension")
        ],
    ),
}

HIDDEN = {
    "Penstock": "beside check_names checked default_options enqueue_now home made_tables own_types "
    "register table_store target",
    "Blueprint": "check_names checked default_options home join own_types register",
    "JobType": "check_bounds decode_result draft encode_result from_payload join joined_to place "
    "prepare",
    "Prepared": "child_of complete",
    "JobHandle": "value",
    "Context": "request_stop wait_in_thread",
    "Chain": "child_of",
    "Group": "child_of",
    "FlowHandle": "ends failure statuses values",
    "Worker": "end silent_seconds when_blocked",
    "operate.schedules.Schedules": "new_job put",
    "remote.client.Remote": "enqueue_now",
}
"""Methods that other parts of Penstock call, and programs do not."""

_CODE_OR_LINK = re.compile(
    r"(?P<code>^ *(?P<fence>`{3,}).*?^ *(?P=fence)$)"
    r"|(?P<text>\[(?:[^\[\]]|\[[^\]]*\])*\])\((?!\w+:|#)(?P<path>[^)\s#]+)(?P<anchor>#[^)\s]*)?\)"
    r"|(?P<span>`[^`\n]+`)",
    re.DOTALL | re.MULTILINE,
)
_ROW = re.compile(r"\| \[(?P<title>[^\]]+)\]\((?P<path>[^)]+)\) \| (?P<about>.*) \|")
_HEADING = re.compile(r"(?P<level>#{2,3}) (?P<title>.+)")

Entry = tuple[str, str, str]
Group = tuple[tuple[str, ...], list[Entry]]


def groups() -> list[Group]:
    """The groups of docs/README.md with their pages: title, where it is in the site, about."""
    found: list[Group] = []
    heading: tuple[str, ...] = ()
    for line in (DOCS / "README.md").read_text("utf-8").splitlines():
        if head := _HEADING.fullmatch(line):
            heading = (*heading[: len(head["level"]) - 2], head["title"])
            found.append((heading, []))
        elif row := _ROW.fullmatch(line):
            path = placed((DOCS / row["path"]).resolve())
            found[-1][1].append((row["title"], path.as_posix(), row["about"]))
    return [group for group in found if group[1]]


def placed(source: Path) -> Path:
    """Where a file of the project is among the pages."""
    if source == DOCS / "README.md":
        return Path("contents.md")
    home = DOCS if source.is_relative_to(DOCS) else ROOT
    place = source.relative_to(home)
    if source.suffix == ".md":
        return place.with_name("index.md" if place.name == "README.md" else place.name.lower())
    return place if home == DOCS else Path("source", place).with_suffix(f"{source.suffix}.md")


def gather(pages: Path) -> None:
    """Copy the documentation, and whatever it links to, into a folder."""
    waiting = sorted([ROOT / "README.md", *DOCS.rglob("*.md")])
    seen: set[Path] = set()
    while waiting:
        source = waiting.pop()
        if source in seen or source.is_relative_to(CONFIG):
            continue
        seen.add(source)
        target = pages / placed(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.suffix == ".md":
            text, linked = relinked(source.read_text("utf-8"), source)
            target.write_text(text, "utf-8")
            waiting += linked
        elif source.is_relative_to(DOCS):
            shutil.copy(source, target)
        else:
            name = source.relative_to(ROOT).as_posix()
            language = "python" if source.suffix == ".py" else "text"
            code = source.read_text("utf-8")
            target.write_text(f"# `{name}`\n\n````{language}\n{code}````\n", "utf-8")


def relinked(text: str, source: Path) -> tuple[str, list[Path]]:
    """A page whose links lead to where the pages are, and the files that it links to."""
    linked: list[Path] = []

    def link(match: re.Match[str]) -> str:
        if match["span"]:
            # Code hosts want a bar escaped in a table's code; here the code stands as written.
            return match["span"].replace(r"\|", "|")
        if not match["path"]:
            return match[0]
        target = (source.parent / match["path"]).resolve()
        if target.is_dir():
            return match["text"][1:-1]
        if not target.is_file():
            return match[0]
        linked.append(target)
        way = os.path.relpath(placed(target), placed(source).parent)
        return f"{match['text']}({way}{match['anchor'] or ''})"

    return _CODE_OR_LINK.sub(link, text), linked


def write_reference(pages: Path) -> list[Entry]:
    """Write the pages that are made from docstrings."""
    documented = {name for _, names in REFERENCE.values() for name in names}
    missing = set(penstock.__all__) - documented - {"__version__"}
    if missing:
        raise SystemExit(f"tools/build_site.py has no page for {', '.join(sorted(missing))}.")
    entries: list[Entry] = []
    (pages / "reference").mkdir()
    for title, (about, names) in REFERENCE.items():
        path = f"reference/{title.lower().replace(' ', '-')}.md"
        body = "\n\n".join(f"{documented_by(name)}\n\n{fields(name)}" for name in names)
        (pages / path).write_text(f"# {title}\n\n{about}\n\n{body}\n", "utf-8")
        entries.append((title, path, about))
    return entries


def documented_by(name: str) -> str:
    """The directive that puts the docstrings of a public name into a page."""
    path = f"penstock.{name}"
    last = path.rpartition(".")[2]
    module = ROOT / "src" / f"{path.replace('.', '/')}.py"
    # A function that has the name of its module is found inside it.
    inside = last.islower() and module.is_file()
    options: dict[str, Any] = {"heading": path, "toc_label": last} if inside else {}
    if name in HIDDEN:
        hidden = "|".join(HIDDEN[name].split())
        options["filters"] = ["!^_", f"!^({hidden})$"]
    return f"::: {path}{f'.{last}' if inside else ''}\n    options: {json.dumps(options)}"


def fields(name: str) -> str:
    """The fields of a struct, or the values of an enumeration, as a table."""
    home, _, last = f"penstock.{name}".rpartition(".")
    shape = getattr(import_module(home), last)
    if isinstance(shape, EnumMeta):
        rows = [f"| `{each.name}` | `{each.value}` |" for each in shape]
        return "\n".join(("| member | value |", "|---|---|", *rows))
    if not isinstance(shape, msgspec.StructMeta):
        return ""
    types: dict[str, Any] = {}
    for each in reversed(shape.__mro__):
        types |= inspect.get_annotations(each)
    names, defaults = shape.__struct_fields__, shape.__struct_defaults__
    required = [msgspec.NODEFAULT] * (len(names) - len(defaults))
    rows = [
        f"| `{field}` | `{_type(types[field])}` | {_default(default)} |"
        for field, default in zip(names, (*required, *defaults), strict=True)
    ]
    return "\n".join(("| field | type | default |", "|---|---|---|", *rows))


def _type(annotation: Any) -> str:
    """A type as one writes it, without the modules of its parts."""
    plain = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", plain)


def _default(default: Any) -> str:
    if default is msgspec.NODEFAULT:
        return "–"
    return f"`{default.factory()!r}`" if hasattr(default, "factory") else f"`{default!r}`"


def navigation(tree: list[Group]) -> str:
    """The groups as Zensical's navigation, in TOML."""
    tops: dict[str, list[str]] = {}
    for (top, *inner), entries in tree:
        rows = [f"{{ {json.dumps(title)} = {json.dumps(path)} }}" for title, path, _ in entries]
        tops.setdefault(top, []).extend([_group(inner[0], rows)] if inner else rows)
    return f"[{', '.join(_group(title, rows) for title, rows in tops.items())}]"


def _group(title: str, rows: list[str]) -> str:
    return f"{{ {json.dumps(title)} = [{', '.join(rows)}] }}"


def render(version: str, tree: list[Group]) -> Path:
    """Have Zensical make the site of the pages; where it is."""
    config = Template((CONFIG / "zensical.toml").read_text("utf-8")).substitute(
        version=version, nav=navigation(tree), source=os.path.relpath(ROOT / "src", WORK)
    )
    (WORK / "zensical.toml").write_text(config, "utf-8")
    shutil.copytree(CONFIG / "overrides", WORK / "overrides")
    zensical = Path(sys.executable).with_name("zensical")
    made = subprocess.run(
        [zensical, "build"], cwd=WORK, capture_output=True, text=True, check=False
    )
    if made.returncode:
        raise SystemExit(f"Zensical could not build the site.\n{made.stdout}{made.stderr}")
    return WORK / "site"


def write_texts(pages: Path, site: Path, tree: list[Group]) -> None:
    """Write the pages as text beside themselves, a list of them, and all of them in one."""
    summary = (pages / "index.md").read_text("utf-8").split("\n\n")[1]
    index = [f"# Penstock\n\n> {' '.join(summary.split())}"]
    whole: list[str] = []
    for heading, entries in tree:
        index.append(f"## {': '.join(heading)}")
        rows: list[str] = []
        for title, path, about in entries:
            made = path.startswith("reference/")
            rows.append(f"- [{title}]({path.removesuffix('.md') + '/' if made else path}): {about}")
            if not made:
                (site / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(pages / path, site / path)
                whole.append((pages / path).read_text("utf-8").strip())
        index.append("\n".join(rows))
    (site / "llms.txt").write_text("\n\n".join(index) + "\n", "utf-8")
    (site / "llms-full.txt").write_text("\n\n".join(whole) + "\n", "utf-8")


def publish(made: Path, version: str) -> Path:
    """Put the site among those of other versions, and tell the switch of them."""
    target = SITE / version
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(made, target)
    folders = [each.parent.name for each in SITE.glob("*/index.html")]
    versions = sorted(folders, key=_numbers, reverse=True)
    listed = [
        {"version": each, "title": each, "aliases": ["latest"] if each == versions[0] else []}
        for each in versions
    ]
    (SITE / "versions.json").write_text(json.dumps(listed, indent=2) + "\n", "utf-8")
    (SITE / "index.html").write_text(
        f'<!doctype html><title>Penstock</title><meta http-equiv="refresh" content="0; '
        f'url={versions[0]}/"><a href="{versions[0]}/">Penstock {versions[0]}</a>\n',
        "utf-8",
    )
    return target


def _numbers(version: str) -> list[tuple[int, str]]:
    """What versions are compared by: 1.10 is newer than 1.9, and than 1.10rc1."""
    parts = re.findall(r"\d+|[a-z]+", version)
    return [*((int(each), "") if each.isdigit() else (-1, each) for each in parts), (0, "")]


def main() -> None:
    """Build the site of one version, by default that of the package."""
    version = sys.argv[1] if len(sys.argv) > 1 else penstock.__version__
    shutil.rmtree(WORK, ignore_errors=True)
    pages = WORK / "pages"
    pages.mkdir(parents=True)
    gather(pages)
    shutil.copy(CONFIG / "extra.css", pages)
    bring(CONFIG, ROOT / "build" / "site-vendor", MERMAID)
    shutil.copy(ROOT / "build" / "site-vendor" / "mermaid.js", pages)
    tree = groups()
    at = next(i for i, (heading, _) in enumerate(tree) if heading == ("Reference",))
    tree.insert(at + 1, (("Reference", "Python"), write_reference(pages)))
    made = render(version, tree)
    write_texts(pages, made, tree)
    site = publish(made, version)
    broken = list(problems(site))
    if broken:
        raise SystemExit("\n".join(broken))
    print(f"The site is in {site.relative_to(ROOT)}.")


if __name__ == "__main__":
    main()
