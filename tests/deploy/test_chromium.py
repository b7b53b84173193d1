"""The script that installs a browser for the browser tests, where it can."""

import shutil
import subprocess
from pathlib import Path

import pytest

from .conftest import ROOT

SCRIPT = ROOT / "tools" / "install_chromium.sh"
NEEDED = ("sh", "touch", "grep", "tail", "timeout")


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A PATH with little on it, where somebody is root and apt-get fails."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in NEEDED:
        found = shutil.which(name)
        if found is None:
            pytest.skip(f"{name} is not installed")
        (folder / name).symlink_to(found)
    put(folder / "id", "echo 0")
    put(folder / "uname", "echo Linux")
    put(folder / "apt-get", "echo apt-get $* >> $0.asked; echo E: no network; exit 100")
    return folder


def put(file: Path, script: str) -> None:
    file.unlink(missing_ok=True)
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


def install(programs: Path) -> str:
    """Run it; it never fails, and says at most two lines."""
    done = subprocess.run(
        [str(SCRIPT), str(programs / "tried")],
        env={"PATH": str(programs)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""
    return done.stdout


def test_where_chromium_is_there_it_says_nothing(programs: Path) -> None:
    put(programs / "chromium", "exit 0")
    assert install(programs) == ""


def test_what_apt_get_says_is_told_in_one_line_and_it_is_tried_once(programs: Path) -> None:
    said = install(programs).splitlines()
    assert said[-1] == (
        "The browser tests are skipped: apt-get could not install chromium (E: no network)."
    )
    assert install(programs) == ""
    assert (programs / "apt-get.asked").read_text().count("\n") == 1


def test_who_is_not_root_is_told_why_they_are_skipped(programs: Path) -> None:
    put(programs / "id", "echo 1000")
    assert install(programs) == (
        "The browser tests are skipped: chromium is not installed, and only root may install it.\n"
    )


def test_it_installs_what_apt_get_has(programs: Path) -> None:
    put(programs / "apt-get", "echo $* >> $0.asked")
    assert "this happens once" in install(programs)
    asked = (programs / "apt-get.asked").read_text()
    assert "update" in asked
    assert "install --yes --no-install-recommends chromium" in asked
