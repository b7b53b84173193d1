"""One probe in a process of its own: `python -m proof.bench.child CALL`."""

import asyncio
import inspect
import sys
from importlib import import_module
from typing import Any

import msgspec

from penstock.logs import configure_logs
from penstock.worker import loop
from proof.bench.call import Call
from proof.bench.probes import claims, client, engine, raw, worker

LATE = {"server": "proof.bench.probes.server"}
PROBES = {"claims": claims, "client": client, "engine": engine, "raw": raw, "worker": worker}


def run(call: Call) -> Any:
    """Run a probe, in the event loop it would have in production."""
    group, _, name = call.probe.partition(".")
    # They need drivers and more that no other probe does.
    late = LATE.get(group, f"proof.bench.limits.{group}")
    module = PROBES.get(group) or import_module(late)
    probe = getattr(module, name)
    if not inspect.iscoroutinefunction(probe):
        return probe(**call.arguments)
    if group == "client":
        return asyncio.run(probe(**call.arguments))
    return loop.run(probe(**call.arguments))


def main() -> None:
    """Run what the first argument describes and answer with JSON."""
    configure_logs(level="warning")
    answer = run(msgspec.json.decode(sys.argv[1], type=Call))
    sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")


if __name__ == "__main__":
    main()
