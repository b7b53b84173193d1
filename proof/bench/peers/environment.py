"""Where the peers are installed: each into an environment of its own, at its own newest version.

One environment for all would not do: they disagree about the versions of redis they need.
"""

import hashlib
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import msgspec

from penstock import __version__
from proof.bench.peers.system import NODE, PENSTOCK, System

MODULES = "PEER_MODULES"


class PeerMissing(RuntimeError):
    """A peer cannot be installed here; the text says why."""


class Environments:
    """The peers' environments in a checkout, under `benchmarks/.venv`, made when first needed."""

    def __init__(self, checkout: Path) -> None:
        self._scripts = checkout / "benchmarks" / "peers"
        self._locks = checkout / "requirements" / "bench"
        self._home = checkout / "benchmarks" / ".venv"

    def install(self, system: System) -> None:
        """Make a system's environment, unless it is there as its lock file wants it."""
        if system.name == PENSTOCK:
            return
        lock = self._node_lock if system.name == NODE else self._locks / f"{system.name}.lock"
        mark = self._home / system.name / ".installed"
        wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
        if mark.is_file() and mark.read_text("utf-8") == wanted:
            return
        if system.name == NODE:
            self._install_node()
        else:
            self._install_python(system.name, lock)
        mark.write_text(wanted, "utf-8")

    def command(self, system: System) -> list[str]:
        """The command to which a system's arguments are added."""
        if system.name == NODE:
            return [_tool("node"), str(self._scripts / NODE / "peer.mjs")]
        python = sys.executable if system.name == PENSTOCK else self.python(system.name)
        return [str(python), str(self._scripts / f"{system.name}_peer.py")]

    def variables(self, system: System) -> dict[str, str]:
        """What the command needs in its environment."""
        return {MODULES: str(self._home / NODE)} if system.name == NODE else {}

    def version(self, system: System) -> str:
        """The version that its lock file names, or penstock's own."""
        if system.name == PENSTOCK:
            return __version__
        if system.name == NODE:
            lock = msgspec.json.decode(self._node_lock.read_bytes())
            return str(lock["packages"]["node_modules/bullmq"]["version"])
        text = (self._locks / f"{system.name}.lock").read_text("utf-8")
        found = re.search(rf"^{system.name}(?:\[.*\])?==(\S+)", text, re.MULTILINE)
        return found[1] if found else "unknown"

    def python(self, name: str) -> Path:
        """The interpreter of a peer."""
        return self._home / name / "bin" / "python"

    @property
    def _node_lock(self) -> Path:
        return self._scripts / NODE / "package-lock.json"

    def _install_python(self, name: str, lock: Path) -> None:
        home = self._home / name
        venv.create(home, clear=True, with_pip=False)
        _run(
            name,
            [sys.executable, "-m", "pip", "--disable-pip-version-check", "--no-input", "--quiet",
             "--python", str(self.python(name)), "install", "--require-hashes", "-r", str(lock)],
        )  # fmt: skip

    def _install_node(self) -> None:
        npm, home = _tool("npm"), self._home / NODE
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        for file in ("package.json", "package-lock.json"):
            shutil.copy(self._scripts / NODE / file, home)
        # Its one install script compiles an addition to msgpackr that BullMQ works without.
        _run(
            NODE, [npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts", "--prefix", str(home)]
        )


def _tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        raise PeerMissing(f"{name} is not on this machine")
    return found


def _run(name: str, command: list[str]) -> None:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        said = [line for line in ended.stderr.splitlines() if "error" in line.lower()]
        # Of the many lines that npm writes, the longest is the sentence.
        raise PeerMissing(
            f"installing {name} failed: {max(said, key=len, default='no reason given')}"
        )
