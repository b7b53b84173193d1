"""Measuring penstock against the limit of its store and against a peer, in one run.

Loaded when first used: the measured processes live in this package and import nothing else of it.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from penstock.bench.run import run_bench

__all__ = ["run_bench"]


def __getattr__(name: str) -> Any:
    if name != "run_bench":
        raise AttributeError(f"module 'penstock.bench' has no attribute {name!r}")
    from penstock.bench.run import run_bench

    return run_bench
