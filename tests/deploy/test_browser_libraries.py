"""The build hook that brings htmx and uPlot into the package."""

import hashlib
import json
import re
import subprocess
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from .conftest import ROOT

BROWSER = ROOT / "src/penstock/server/dashboard/browser"
TEMPLATES = ROOT / "src/penstock/server/dashboard/templates"


@pytest.fixture
def hook(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(ROOT))
    return import_module("hatch_build")


@pytest.fixture
def npm(hook: ModuleType, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """An npm that writes files of the right names; what it was asked."""
    asked: list[list[str]] = []

    def run(command: list[str], *, cwd: str, **_: object) -> None:
        asked.append(command)
        for source in hook.WANTED.values():
            file = Path(cwd, "node_modules", source)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(source)

    monkeypatch.setattr(subprocess, "run", run)
    monkeypatch.setattr(hook, "npm_command", lambda: ["npm"])
    return asked


def test_the_lock_pins_versions_and_hashes_and_names_no_registry() -> None:
    text = (BROWSER / "package-lock.json").read_text("utf-8")
    packages = json.loads(text)["packages"]
    for name in ("node_modules/htmx.org", "node_modules/swagger-ui-dist", "node_modules/uplot"):
        assert re.fullmatch(r"\d+\.\d+\.\d+", packages[name]["version"])
        assert packages[name]["integrity"].startswith("sha512-")
    assert "://" not in text
    assert packages["node_modules/htmx.org"]["version"].startswith("2.")
    assert packages["node_modules/swagger-ui-dist"]["version"].startswith("5.")
    assert packages["node_modules/uplot"]["version"].startswith("1.6.")


def test_every_library_that_a_page_loads_is_brought(hook: ModuleType) -> None:
    pages = "\n".join(file.read_text("utf-8") for file in TEMPLATES.rglob("*.html"))
    loaded = set(re.findall(r"vendor/([\w.-]+)", pages))
    assert loaded
    assert loaded <= hook.WANTED.keys()


def test_they_are_fetched_as_locked_and_once_per_lock(
    hook: ModuleType, npm: list[list[str]], tmp_path: Path
) -> None:
    assert hook.bring(BROWSER, tmp_path / "vendor")
    assert not hook.bring(BROWSER, tmp_path / "vendor")
    ((_, command, *flags),) = npm
    assert command == "ci"
    assert "--ignore-scripts" in flags
    assert {file.name for file in (tmp_path / "vendor").iterdir()} == {*hook.WANTED, hook.STAMP}
    lock = hashlib.sha256((BROWSER / "package-lock.json").read_bytes()).hexdigest()
    assert (tmp_path / "vendor" / hook.STAMP).read_text() == lock


def test_without_npm_the_build_goes_on_with_one_warning(
    hook: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    folder = tmp_path / hook.DASHBOARD / "browser"
    folder.mkdir(parents=True)
    (folder / "package-lock.json").write_text("{}")
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr(hook, "find_spec", lambda name: None)
    warnings: list[str] = []
    built = SimpleNamespace(
        root=str(tmp_path), app=SimpleNamespace(display_warning=warnings.append)
    )
    hook.BrowserLibraries.initialize(built, "standard", {})
    (warning,) = warnings
    assert "no npm on PATH" in warning
    assert "\n" not in warning


def test_what_npm_complains_of_is_told_in_one_line(hook: ModuleType) -> None:
    failed = subprocess.CalledProcessError(1, "npm", stderr=b"\nnpm error 404\nnpm error more\n")
    assert hook.reason(failed) == "npm error 404"
