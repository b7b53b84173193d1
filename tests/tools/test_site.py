"""The documentation site: how pages are put together, and what its check finds."""

import json
from importlib import import_module
from inspect import getsource
from pathlib import Path

import pytest

from tools.build_site import (
    DOCS,
    HIDDEN,
    ROOT,
    documented_by,
    fields,
    groups,
    navigation,
    placed,
    publish,
    relinked,
)
from tools.check_site import problems


def page(site: Path, name: str, body: str) -> None:
    path = site / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"<!doctype html><body>{body}</body>")


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ("nowhere/", "does not exist"),
        ("guide/#nowhere", "has no such anchor"),
        ("#nowhere", "has no such anchor"),
    ],
)
def test_a_broken_link_is_one_sentence_with_its_page(
    tmp_path: Path, link: str, problem: str
) -> None:
    page(tmp_path, "index.html", f'<a href="{link}">there</a>')
    page(tmp_path, "guide/index.html", '<h2 id="here">Here</h2>')
    assert list(problems(tmp_path)) == [f"index.html links to {link}, which {problem}."]


def test_links_that_lead_somewhere_are_no_problem(tmp_path: Path) -> None:
    page(tmp_path, "index.html", '<a href="guide/#here"></a><a href="https://example.com"></a>')
    page(tmp_path, "guide/index.html", '<h2 id="here">Here</h2><a href="..">up</a>')
    assert list(problems(tmp_path)) == []


@pytest.mark.parametrize(
    "element",
    [
        '<script src="https://cdn.example.com/a.js"></script>',
        '<img src="//cdn.example.com/a.png">',
        '<link rel="stylesheet" href="https://cdn.example.com/a.css">',
    ],
)
def test_a_file_from_another_host_is_a_problem(tmp_path: Path, element: str) -> None:
    page(tmp_path, "index.html", element)
    [problem] = problems(tmp_path)
    assert problem.endswith("which is on another host.")


def test_links_lead_to_where_pages_are_in_the_site() -> None:
    text, linked = relinked(
        "[the `README`](../../README.md#five-minutes) and [jobs](jobs.md), `[not](this.md)`\n"
        "```\n[nor](that.md)\n```\n",
        DOCS / "guide" / "server.md",
    )
    assert text == (
        "[the `README`](../index.md#five-minutes) and [jobs](jobs.md), `[not](this.md)`\n"
        "```\n[nor](that.md)\n```\n"
    )
    assert linked == [ROOT / "README.md", DOCS / "guide" / "jobs.md"]


def test_a_bar_in_the_code_of_a_table_is_shown_without_its_escape() -> None:
    text, _ = relinked("| `int \\| None` | text |\n", DOCS / "guide" / "jobs.md")
    assert text == "| `int | None` | text |\n"


def test_what_is_no_page_becomes_one_with_its_text() -> None:
    assert placed(ROOT / "LICENSE") == Path("source/LICENSE.md")
    assert placed(ROOT / "deploy" / "runbook.md") == Path("deploy/runbook.md")
    assert placed(DOCS / "pictures" / "top.svg") == Path("pictures/top.svg")


def test_the_headings_of_the_index_are_the_groups_of_the_site() -> None:
    tree = groups()
    assert tree[0][0] == ("Start here",)
    assert tree[0][1][0][:2] == ("Penstock", "index.md")
    assert ("Guides", "Writing jobs") in [heading for heading, _ in tree]
    nested = [(("A", "B"), [("c", "c.md", "")]), (("A", "D"), [("e", "e.md", "")])]
    assert navigation(nested) == (
        '[{ "A" = [{ "B" = [{ "c" = "c.md" }] }, { "D" = [{ "e" = "e.md" }] }] }]'
    )


def test_fields_of_a_struct_are_a_table_with_types_and_defaults() -> None:
    assert "| `seconds` | `float` | – |" in fields("extension.Again")
    assert "| `workspace_id` | `str | None` | `None` |" in fields("extension.Asking")
    assert "| `UNTIL_DONE` | `until_done` |" in fields("KeyScope")
    assert fields("Penstock") == ""


def test_a_function_is_found_in_the_module_of_its_name_and_headed_by_its_public_one() -> None:
    directive = documented_by("testing.drain")
    assert directive.startswith("::: penstock.testing.drain.drain\n")
    assert '"heading": "penstock.testing.drain"' in directive


def test_methods_that_only_penstock_calls_are_left_out_and_exist() -> None:
    assert '"!^(child_of|complete)$"' in documented_by("Prepared")
    for name, hidden in HIDDEN.items():
        home, _, last = f"penstock.{name}".rpartition(".")
        shape = getattr(import_module(home), last)
        source = getsource(shape)
        for each in hidden.split():
            assert hasattr(shape, each) or f"self.{each}" in source


def test_the_newest_version_is_the_latest_and_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tools.build_site.SITE", tmp_path / "site")
    page(tmp_path, "made/index.html", "")
    for version in ("0.10.0", "0.9.1", "0.10.0rc1"):
        publish(tmp_path / "made", version)
    versions = json.loads((tmp_path / "site" / "versions.json").read_text())
    assert [each["version"] for each in versions] == ["0.10.0", "0.10.0rc1", "0.9.1"]
    assert [each["aliases"] for each in versions] == [["latest"], [], []]
    assert "url=0.10.0/" in (tmp_path / "site" / "index.html").read_text()
