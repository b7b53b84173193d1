"""Facts about the machine that make figures comparable, and nothing that identifies it."""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import apsw
import psutil

from penstock import __version__

BUSY_SHARE = 0.3


def facts(directory: Path) -> dict[str, str]:
    """Name to value, in the order to show them."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        "penstock": __version__,
        "cores": str(os.cpu_count()),
        "memory": f"{psutil.virtual_memory().total / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "file system": _file_system(directory),
        "load before the run": f"{os.getloadavg()[0]:.1f}",
        "Python": platform.python_version(),
        "SQLite": f"{apsw.sqlite_lib_version()}, apsw {apsw.apsw_version()}",
        "event loop of the worker": _event_loop(),
    }


def busy_notes(machine: dict[str, str]) -> list[str]:
    """A warning when other work had the processors: then no figure here is to be believed."""
    load, cores = float(machine["load before the run"]), int(machine["cores"])
    if load < BUSY_SHARE * cores:
        return []
    return [f"The machine was busy before the run (load {load} on {cores} cores): run it again."]


def _file_system(directory: Path) -> str:
    """The kind of file system: one in memory would make every commit look free."""
    here = directory.resolve()
    mounted = [
        part for part in psutil.disk_partitions(all=True) if here.is_relative_to(part.mountpoint)
    ]
    return max(mounted, key=lambda part: len(part.mountpoint)).fstype if mounted else "unknown"


def _event_loop() -> str:
    try:
        return f"uvloop {version('uvloop')}"
    except PackageNotFoundError:
        return "asyncio"
