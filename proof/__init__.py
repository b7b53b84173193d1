"""What proves the product and is no part of it: specification, servers, torture, benchmarks."""

import os

LONG = os.environ.get("PENSTOCK_LONG") == "1"
"""Random input instead of the same at every run, more of it, and every flavour of every store."""
