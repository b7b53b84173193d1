import ast
import asyncio
import re
import sys
import textwrap
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import CodeType, ModuleType

import pytest

from proof.servers import PostgresServer, RedisServer

ROOT = Path(__file__).parents[1]
EXAMPLE = re.compile(
    r"^ *```python \{\.run(?P<servers>(?: \.\w+)*)\}\n(?P<code>.*?)^ *```$",
    re.DOTALL | re.MULTILINE,
)


def pages_with_examples() -> list[str]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    return [
        str(page.relative_to(ROOT))
        for page in pages
        if page.exists() and EXAMPLE.search(page.read_text("utf-8"))
    ]


def examples(page: Path) -> list[CodeType]:
    """The page's examples; each error then names the page and its line."""
    text = page.read_text("utf-8")
    return [
        compile(
            "\n" * text.count("\n", 0, found.start("code")) + textwrap.dedent(found["code"]),
            str(page),
            "exec",
            flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT,
        )
        for found in EXAMPLE.finditer(text)
    ]


@contextmanager
def servers(page: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, object]]:
    """The servers that a page's first example names (`python {.run .postgres .redis}`).

    Its examples find them as `server` and `beside`, and an application as a user does.
    """
    first = EXAMPLE.search(page.read_text("utf-8"))
    wanted = re.findall(r"\w+", first["servers"]) if first else []
    with ExitStack() as stack:
        if wanted:
            names = ("server", "beside")
            started = [
                stack.enter_context(PostgresServer() if kind == "postgres" else RedisServer())
                for kind in wanted
            ]
            for name, server in zip(("PENSTOCK_URL", "PENSTOCK_DISPATCH"), started, strict=False):
                postgres = isinstance(server, PostgresServer)
                url = server.create_database("shop") if postgres else f"{server.url}?namespace=shop"
                monkeypatch.setenv(name, url)
            yield dict(zip(names, started, strict=False))
        else:
            yield {}


async def run(examples: list[CodeType], namespace: dict[str, object]) -> None:
    for code in examples:
        answer = eval(code, namespace)
        if asyncio.iscoroutine(answer):
            await answer


@pytest.mark.parametrize("name", pages_with_examples())
@pytest.mark.quick("README.md")
@pytest.mark.thorough
def test_the_examples_of_a_page_run_one_after_the_other(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    module = ModuleType("example")
    module.__file__ = str(ROOT / name)
    # Annotations of handlers are looked up in the module that defines them.
    monkeypatch.setitem(sys.modules, "example", module)
    with servers(ROOT / name, monkeypatch) as started:
        vars(module).update(started)
        asyncio.run(run(examples(ROOT / name), vars(module)))


def test_an_example_that_raises_fails_with_the_line_of_its_page(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(
        "# Title\n\n```python {.run}\nimport asyncio\nawait asyncio.sleep(0)\n1 / 0\n```\n"
    )
    with pytest.raises(ZeroDivisionError) as error:
        asyncio.run(run(examples(page), {}))
    assert (error.traceback[-1].path, error.traceback[-1].lineno + 1) == (page, 6)


def test_only_examples_marked_to_run_are_run(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("```python\n1 / 0\n```\n\n```python {.run}\nx = 1\n```\n")
    namespace: dict[str, object] = {}
    asyncio.run(run(examples(page), namespace))
    assert namespace["x"] == 1
