"""Measuring penstock against the limit of its store and against a peer, in one run."""

from penstock.bench.run import run_bench

__all__ = ["run_bench"]
