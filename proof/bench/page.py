"""`benchmarks/RESULTS.md`: a page of two parts, each rewritten by a command of its own."""

from pathlib import Path

COMPARISON = "# Compared with others\n"


def find_checkout() -> Path | None:
    """The repository this package runs from, if it does."""
    root = Path(__file__).parents[2]
    return root if (root / "requirements" / "bench").is_dir() else None


def write_figures(page: Path, text: str) -> None:
    """Replace all but the comparison."""
    page.write_text(text + _parts(page)[1], "utf-8")


def write_comparison(page: Path, text: str) -> None:
    """Replace the comparison, which is the end of the page."""
    page.write_text(f"{_parts(page)[0].rstrip()}\n\n{COMPARISON}\n{text}", "utf-8")


def _parts(page: Path) -> tuple[str, str]:
    before, heading, after = page.read_text("utf-8").partition(COMPARISON)
    return before, f"\n{heading}{after}" if heading else ""
