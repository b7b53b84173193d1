"""`make bench-recorder`: the hook, the sanitiser, sessions and imports, and the recorder's jobs.

Each has a command of its own; this runs all of them and writes their part of the page.
"""

import subprocess
import sys

from proof.bench.page import RECORDER, find_checkout, write_part

BENCHMARKS = {
    "The hook": ("proof.bench.hook",),
    "The sanitiser": ("proof.bench.sanitiser",),
    "Sessions and imports": ("proof.bench.recorder", "--megabytes", "300"),
    "Jobs": ("proof.bench.learnings",),
}


def main() -> None:
    """Measure, print, and write the part of the page that is about the recorder."""
    parts: list[str] = []
    for title, words in BENCHMARKS.items():
        done = subprocess.run(
            [sys.executable, "-m", *words], check=True, stdout=subprocess.PIPE, text=True
        )
        told = done.stdout.strip()
        table = told if "| --- |" in told else f"```\n{told}\n```"
        parts.append(f"## {title}\n\n{table}\n")
        sys.stdout.write(f"{parts[-1]}\n")
    checkout = find_checkout()
    if checkout is not None:
        write_part(checkout / "benchmarks" / "RESULTS.md", RECORDER, "\n".join(parts))


if __name__ == "__main__":
    main()
