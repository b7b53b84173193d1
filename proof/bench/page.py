"""`benchmarks/RESULTS.md`: a page of five parts, each rewritten by a command of its own."""

import re
from pathlib import Path

EVENTS = "Events"
RECORDER = "The recorder"
AGENTS = "The agent workers"
COMPARISON = "Compared with others"
_ORDER = (EVENTS, RECORDER, AGENTS, COMPARISON)
_PART = re.compile(rf"^# ({'|'.join(_ORDER)})\n", re.MULTILINE)


def find_checkout() -> Path | None:
    """The repository this package runs from, if it does."""
    root = Path(__file__).parents[2]
    return root if (root / "requirements" / "bench").is_dir() else None


def write_figures(page: Path, text: str) -> None:
    """Replace all that stands before the other parts."""
    _, others = _parts(page)
    _write(page, text, others)


def write_part(page: Path, name: str, text: str) -> None:
    """Replace one of the other parts."""
    first, others = _parts(page)
    _write(page, first, {**others, name: text})


def _parts(page: Path) -> tuple[str, dict[str, str]]:
    first, *rest = _PART.split(page.read_text("utf-8"))
    return first, dict(zip(rest[::2], rest[1::2], strict=True))


def _write(page: Path, first: str, others: dict[str, str]) -> None:
    parts = [f"# {name}\n\n{others[name].strip()}\n" for name in _ORDER if name in others]
    page.write_text("\n".join([f"{first.rstrip()}\n", *parts]), "utf-8")
