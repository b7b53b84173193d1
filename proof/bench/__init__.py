"""Measuring penstock against the limit of its store and against its peers, in one run.

Loaded when first used: the measured processes live in this package and import nothing else of it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from proof.bench.peers.run import run_comparison
    from proof.bench.run import run_bench

__all__ = ["run_bench", "run_comparison"]

_HOMES = {"run_bench": "proof.bench.run", "run_comparison": "proof.bench.peers.run"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'proof.bench' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)
