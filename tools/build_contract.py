"""Compile the registry: `python tools/build_contract.py`; with `--check`, only compare.

The ABI and the bytecode are committed beside the source, so that nobody who publishes needs the
compiler. uv brings the version of it that the source names.
"""

import json
import subprocess
import sys
from pathlib import Path

FOLDER = Path(__file__).parents[1] / "src/penstock/apps/recorder/publish"
SOURCE = FOLDER / "LearningRegistry.vy"
BUILT = FOLDER / "LearningRegistry.json"
COMPILER = "vyper==0.4.3"
EVM = "shanghai"


def build() -> str:
    """The ABI and the bytecode as a document."""
    parts = {
        part: subprocess.run(
            [
                *(sys.executable, "-m", "uv", "tool", "run", "--from", COMPILER, "vyper"),
                *("-f", part, "--evm-version", EVM, SOURCE.name),
            ],
            cwd=FOLDER,
            check=True,
            capture_output=True,
            text=True,
        ).stdout.strip()
        for part in ("abi", "bytecode")
    }
    built = {
        "compiler": COMPILER,
        "evm": EVM,
        "abi": json.loads(parts["abi"]),
        "bytecode": parts["bytecode"],
    }
    return json.dumps(built, indent=2) + "\n"


def main() -> None:
    """Write the document, or say that it is not what the source makes."""
    built = build()
    if "--check" in sys.argv[1:]:
        if BUILT.read_text() != built:
            sys.exit(f"{BUILT.name} is not what {SOURCE.name} makes; run tools/build_contract.py.")
    else:
        BUILT.write_text(built)


if __name__ == "__main__":
    main()
