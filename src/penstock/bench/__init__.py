"""Measuring penstock against the limit of its store and against its peers, in one run.

Loaded when first used: the measured processes live in this package and import nothing else of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.bench.peers.run import run_comparison
    from penstock.bench.run import run_bench

__all__ = ["run_bench", "run_comparison"]

_HOMES = {"run_bench": "penstock.bench.run", "run_comparison": "penstock.bench.peers.run"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'penstock.bench' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
