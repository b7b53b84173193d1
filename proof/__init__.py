"""What proves the product and is no part of it: specification, servers, torture, benchmarks."""

import os

TIERS = ("test", "all", "long", "outside")
TIER = os.environ.get("PENSTOCK_TIER", "test")
"""The run of the tests: that of `make test`, `make test-all`, `make long` or `make outside`."""
if TIER not in TIERS:
    raise SystemExit(f"PENSTOCK_TIER is {TIER!r}; set it to one of {', '.join(TIERS)}.")

LONG = TIER == "long"
"""Random input instead of the same at every run, more of it, and every flavour of every store."""
