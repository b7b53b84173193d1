"""The command line: parse, build settings, call one function."""

from penstock.cli.program import app, main

__all__ = ["app", "main"]
